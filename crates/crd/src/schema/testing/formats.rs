//! Strings that have a format, or nearly.

use super::Generator;

/// Strings that have a format.
const SAMPLES: [(&str, &[&str]); 26] = [
    ("date", &["2024-02-29", "1999-12-31"]),
    ("date-time", &["2024-02-29T23:59:59Z", "2024-01-01t00:00:00.123+01:30"]),
    (
        "duration",
        &[
            "1h30m",
            "-1.5s",
            "5 days",
            "3 weeks 2 hrs",
            "0",
            "9223372036854775807ns",
            "1.999s",
            "2562047h47m16.854775808s",
        ],
    ),
    ("uuid", &["01234567-89ab-cdef-0123-456789ABCDEF", "0123456789abcdef0123456789abcdef"]),
    ("uuid3", &["00000000-0000-3000-7000-000000000000"]),
    ("uuid4", &["00000000-0000-4000-8000-000000000000"]),
    ("uuid5", &["00000000-0000-5000-b000-000000000000"]),
    ("ipv4", &["1.2.3.4", "010.001.255.0", "::ffff:1.2.3.4"]),
    ("ipv6", &["::", "1:2:3:4:5:6:7:8", "fe80::1", "::ffff:1.2.3.4", "1:2:3::", "1:2:3:4:5:6:1.2.3.4"]),
    ("cidr", &["10.0.0.0/8", "::/0", "fe80::1/128", "1:2:3:4:5:6:1.2.3.4/12", "010.1.1.1/08"]),
    ("mac", &["00:00:5e:00:53:01", "02-00-5e-10-00-00-00-01", "0000.5e00.5301", "0200.5e10.0000.0001"]),
    ("isbn", &["0321751043", "978-0321751041", "097522980X"]),
    ("isbn10", &["0-321-75104-3"]),
    ("isbn13", &["978 0321751041"]),
    (
        "creditcard",
        &[
            "4111 1111 1111 1111",
            "3782-822463-10005",
            "5555555555554444",
            "6011000990139424",
            "3530111333300000",
            "30569309025904",
        ],
    ),
    ("ssn", &["123-45-6789", "123 45 6789"]),
    ("hexcolor", &["#ffFF01", "abc"]),
    ("rgbcolor", &["rgb(1,20,255)", "rgb( 0 , 199,249 )"]),
    ("byte", &["YWI=", "YQ==", "+/+/"]),
    ("password", &["x"]),
    ("bsonobjectid", &["507f1f77bcf86cd799439011"]),
    ("hostname", &["a", "a.example.com", "a-b.c-d.org", "\u{fc}.de", "1.2.io", "a.b-c"]),
    ("k8s-short-name", &["a-b", "0"]),
    ("k8s-long-name", &["a.b-c.d", "0"]),
    (
        "uri",
        &[
            "http://a/b?c",
            "mailto:x@y",
            "/a/b",
            "https://u:p@h:80/%20",
            "http://[::1]:80/",
            "ftp://[fe80::1%25en0]/x",
            "x://a:1:2",
            "*",
        ],
    ),
    (
        "email",
        &[
            "a@b.c",
            "Bob Lee <a@b>",
            "\"q q\"@b",
            "a@[1.2.3.4]",
            "a@b (c)",
            "g: a@b;",
            "=?utf-8?q?a?= <a@b>",
            "a.b <c@d> (x)",
            "=?x?q?a?= <a@b>",
        ],
    ),
];

impl Generator {
    /// A string format and a string that nearly has it: a valid one with a few characters changed.
    pub fn formatted(&mut self) -> (&'static str, String) {
        let (name, samples) = self.pick(&SAMPLES);
        let mut characters: Vec<char> = self.pick(samples).chars().collect();
        for _ in 0..self.below(4) {
            let at = self.below(characters.len() + 1);
            let alphabet: Vec<char> = "019afgzAZX:.-+/@%[]()<>\"\\ ,;?=_tT\n\t\u{b5}\u{fc}".chars().collect();
            let other = *self.pick(&alphabet);
            match self.below(4) {
                0 => characters.insert(at, other),
                1 if at < characters.len() => {
                    characters.remove(at);
                }
                2 if at < characters.len() => characters[at] = other,
                _ if characters.len() > 1 => {
                    let from = self.below(characters.len());
                    let part: Vec<char> = characters[from..].iter().take(4).copied().collect();
                    let at = at.min(characters.len());
                    characters.splice(at..at, part);
                }
                _ => {}
            }
        }
        (name, characters.into_iter().collect())
    }
}
