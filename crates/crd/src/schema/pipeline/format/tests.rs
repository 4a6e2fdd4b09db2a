//! Every format, with texts that the server accepts and texts that it rejects.

use super::*;

fn check(name: &str, valid: &[&str], invalid: &[&str]) {
    for text in valid {
        assert_eq!(format_is_valid(name, text, Server::default()), Some(true), "{name} {text:?}");
    }
    for text in invalid {
        assert_eq!(format_is_valid(name, text, Server::default()), Some(false), "{name} {text:?}");
    }
}

#[test]
fn each_format_takes_and_refuses_what_the_server_does() {
    check(
        "date",
        &["2024-02-29", "0000-01-01"],
        &["2023-02-29", "2024-2-9", "2024-00-10", "2024-01-00", "", "+024-01-01"],
    );
    check(
        "date-time",
        &["2024-01-01T10:00:00Z", "2024-01-01t10:00:00.5+25:99", "2024-01-01T10:00:00x5zT", "2024-01-01T23:59:59z"],
        &["2024-01-01T24:00:00Z", "2024-01-01T10:00:00", "2024-01-01 10:00:00Z", "2024-01-01T10:00:60Z"],
    );
    check(
        "duration",
        &["1h30m", "-1.5s", "0", "5 days", "x 3 weeks y", "1.s", "99999999999h", "5\u{3bc}s", "1 HOUR"],
        &["", "5", "s", "5 parsecs", "99999999999999999999 h", "1 \u{3bc}s"],
    );
    check("uuid", &["00000000-0000-0000-0000-000000000000", "0000000000000000000000000000000A"], &["0", ""]);
    check("uuid4", &["00000000-0000-4000-8000-000000000000"], &["00000000-0000-4000-7000-000000000000"]);
    check("uuid3", &["00000000-0000-3000-7000-000000000000"], &["00000000-0000-4000-8000-000000000000"]);
    check("ipv4", &["1.2.3.4", "01.002.3.4", "::ffff:1.2.3.4"], &["1.2.3", "1.2.3.256", "::1", "1.2.3.4 "]);
    check("ipv6", &["::", "::1", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4"], &["1.2.3.4", "::1%eth0", "::ffff:01.2.3.4", ""]);
    check("cidr", &["10.0.0.0/8", "010.0.0.0/08", "::/0", "::1/128"], &["10.0.0.0", "10.0.0.0/33", "::/129", "/8"]);
    check(
        "mac",
        &["00:00:5e:00:53:01", "0000.5e00.5301", "02-00-5E-10-00-00-00-01", "00005e005301", "02005E1000000001"],
        &["00:00:5e:00:53", "00:00-5e:00:53:01", "00005e00530", "00005e00530g", "00005e0053010a"],
    );
    check("isbn", &["0321751043", "978-0321751041", "097522980X"], &["0321751044", "978-0321751040", ""]);
    check("creditcard", &["4111 1111 1111 1111", "3782-822463-10005"], &["4111111111111112", "", "6"]);
    check("ssn", &["123-45-6789", "123 45-6789"], &["123456789", "123-45-678"]);
    check("hexcolor", &["#FFFFFF", "abc"], &["#ff", "#ggg", "##fff"]);
    check("rgbcolor", &["rgb(0,255,7)", "rgb( 1 , 2,3 )"], &["rgb(256,0,0)", "rgb(00,0,0)", "rgb(1,2)", "RGB(1,2,3)"]);
    check("byte", &["YWI=", "YQ==", "+/+/"], &["", "YWI", "YW_=", "Y==="]);
    check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g"]);
    check("hostname", &["a", "a-b.example.com", "1.io", "\u{fc}.de"], &["", "-a", "a.1", "a..b", "a.b-c"]);
    check("password", &["", "anything"], &[]);
    check("k8s-short-name", &["a", "0-a"], &["", "A", "-a", "a.b"]);
    check("k8s-long-name", &["a.b", "0-a.c"], &["", "a..b", "a.B"]);
    check(
        "uri",
        &[
            "http://a",
            "/a b",
            "*",
            "mailto:x",
            "http://[::1]:80/",
            "http://[fe80::1%25en0]/",
            "a:",
            "http://u:p@h/%20?%zz",
        ],
        &[
            "",
            "a",
            "//a\u{7f}",
            ":a",
            "http://a b/",
            "http://a:b/",
            "http://a/%zz",
            "http://[1.2.3.4]/",
            "http://a:1:2/",
        ],
    );
    check(
        "email",
        &["a@b", "a.b+c@d.example", "\u{fc}@\u{fc}"],
        &["", "a", "a@", "@b", ".a@b", "a..b@c", "a@b@c", "g:;"],
    );
}

#[test]
fn formats_that_the_server_does_not_know_let_everything_through() {
    assert_eq!(format_is_valid("int32", "x", Server::default()), Some(true));
    assert_eq!(format_is_valid("DATE", "x", Server::default()), Some(true));
    assert_eq!(format_is_valid("k8s-short-name", "A", Server { minor: 33 }), Some(true));
    assert_eq!(format_is_valid("-da-te-", "x", Server::default()), Some(false));
}

#[test]
fn more_than_a_plain_address_is_not_known() {
    for text in ["Bob <a@b>", "\"q q\"@b", "a@[1.2.3.4]", "a@b (c)", "g:a@b;", "a@b, c@d", "=?x?q?a?= <a@b>", " a@b"] {
        assert_eq!(format_is_valid("email", text, Server::default()), None, "{text:?}");
    }
}

#[test]
fn a_mac_of_digits_alone_depends_on_how_older_servers_were_built() {
    let of = |minor: u32, text: &str| format_is_valid("mac", text, Server { minor });
    assert_eq!([of(36, "00005e005301"), of(35, "00005e005301")], [Some(true), None]);
    assert_eq!([of(36, "00:00:5e:00:53:01"), of(35, "00:00:5e:00:53:01")], [Some(true), Some(true)]);
    assert_eq!([of(36, "00005e00530"), of(35, "00005e00530")], [Some(false), Some(false)]);
}
