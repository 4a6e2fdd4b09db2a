//! kapp's digest, compared with those that kapp itself has written: on the recorded apps, and on texts that its YAML
//! library treats in a way of its own.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pushback_app::identity::has_copy;
use serde_json::{Value, json};

use super::*;

fn rules() -> Rules {
    Rules::of(&Config::default())
}

#[test]
fn every_recorded_object_has_the_digest_that_kapp_gave_it() {
    let apps = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/kapp-apps");
    // Somebody has changed them since: kapp notices by the digest.
    let changed =
        ["06-orphaned ConfigMap stays", "10-edited-by-others ConfigMap a", "10-edited-by-others Deployment web"];
    let mut seen = 0;
    for app in std::fs::read_dir(apps).expect("recorded apps") {
        let app = app.expect("a folder");
        let Ok(text) = std::fs::read_to_string(app.path().join("live.yaml")) else { continue };
        let objects: Vec<Value> = serde_yaml::from_multiple(&text).expect("objects");
        for object in objects.iter().filter(|object| has_copy(object)) {
            let name = format!("{} {} {}", app.file_name().display(), object.text("/kind"), object.name());
            assert_eq!(rules().outdated(object).is_some(), changed.contains(&name.as_str()), "{name}");
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

/// The digest of a Secret with one text, given as `stringData`.
fn digest_of(given: &Value) -> String {
    let encoded = given.as_object().expect("a map").iter();
    let encoded: Map<String, Value> =
        encoded.map(|(key, text)| (key.clone(), STANDARD.encode(text.as_str().expect("a text")).into())).collect();
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "annotations": {}},
        "data": encoded, "type": "Opaque"});
    let manifest = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": given});
    rules().digest(&object, &manifest)
}

#[test]
fn texts_are_quoted_and_wrapped_as_kapp_does_it() {
    let words = "word ".repeat(30);
    let long = [
        (format!("{words}end"), "83c3ab1de17f0753459d251805eac133"),
        (format!("a: {words}end"), "887ad4671305d5cabceb828cfb575b57"),
        (format!("tab\t{words}"), "4f72f5c6aa54f1fff16b9ed494d39aa1"),
    ];
    let short = [
        ("true", "b2c4004caba49af890dfb70a922ced60"),
        ("1.5", "849a32581ba3c55852942f8bc3fd69b8"),
        ("0x1f", "d0eaec747122f1245352477848412d30"),
        ("1e3", "a7f1961a7bcfa3d9a188804348dcf614"),
        ("~", "53050387afc1c09324a01d138ea747d7"),
        ("null", "1e9d4e8183ea69f93be6177ebb357f01"),
        ("", "7e10516bbad4c411b00ac0bc201a5588"),
        ("a: b", "2ef645290cebfc592a5854cfcb1cfbe2"),
        ("a #b", "ebeb7da87983b649b4abbd8ef9ef019b"),
        ("- x", "4c51a26a100cfc4ba416fc10ac46f3b4"),
        ("*a", "8e0b0a0d2b260ac978fe89df88a63aaa"),
        ("!a", "6d24a07e2bd5fbb901fde2664f79c998"),
        ("'q", "deb467e87f7e47164560859b13c1e0b4"),
        ("\"q", "5b2441f063d233740e1e273d6a7c87c5"),
        ("it's", "5490b363de7548a1ab1c9a678d54bfdd"),
        ("multi\nline", "24b345ae3484f09a51de09d477844b29"),
        ("multi\nline\n", "a9194e20d76b72239a2526aa8c236c41"),
        ("multi\n\n", "be498dacb4c39f6ac716c8b9940bf49e"),
        (" lead\nx", "82f532d9073bbc7eb07fe21acb64c559"),
        ("trail ", "1a27b7b1c86ee2a7a45ec3ed6b474aa9"),
        ("  lead", "bf7f8d6dc9f22aae9935cf671fd9bc51"),
        ("tab\tx", "92a739953564a79766da0b8f58d46ba8"),
        ("1:30", "aee55c79222c5ea45c083906750f90c3"),
        ("2001-01-01", "ddeba991ab0f2c4531870290a5cfd6d3"),
        ("2001-01-01T00:00:00Z", "bb007bb1241a611d4e22d0c3ec3d4586"),
        ("@x", "6582fdeef12dd84085f4feb4ec20b524"),
        ("a,b", "178e8901691331b3f7c68d75bcf88a6e"),
        ("[a]", "05bae348c19128ee4f5aa225e85311e8"),
        ("é", "c06bc4f84141b176196833f8111f802f"),
        ("😀", "742115fa511d9ff25da0330c314561d5"),
        ("0o7", "0ed0243ded6ae9df419d6466bedceddf"),
        ("0b1", "3548f6c1a93575467191c827066b5bad"),
        ("1_000", "e4ef0ccd63163ffa380a41f472f5f247"),
        ("yes", "0887df71890a53c081ecfaa997e5996c"),
        ("y", "d9e6504bb2f840b3ebdba592209e69b4"),
        ("on", "0c12d46d91058819d8901cf1e7f37230"),
        ("=", "d09a273397b9bac8ba62f8b4ced4f474"),
        ("<<", "aa2cdaa2647a01b822bc73097d6cf10c"),
        (".inf", "69c09d9e83ca46faee8bbc77caaeb7d1"),
        ("a:", "1d4d9aaf372321e793477d8e7f13d246"),
        ("x\r\n", "3514dd5d24de433207eea0f3abd983e9"),
        ("\u{7}", "f587144ef6a92f62b1a6c9cf1bbf9d1c"),
        ("a\u{a0}b", "82d280698afde0871001eb861bdcf471"),
        ("x \ny", "da8a4a7bec2f96c6c86178c7e847527a"),
        ("\nx", "15781bb55f9f7bbb0b9c1b625cda5245"),
        ("\t", "c28e6b5b0aa169fe0d3756444883fb35"),
        ("0777", "8364663dda3d081b1e6def4cce452e9e"),
        ("089", "7e2e0ff4f632148289ca51783a4890bf"),
        ("1e+3", "c65db6103810eee3a798a6c90559b8bc"),
        ("+1", "797816959e83835a59468715a434ac54"),
        ("1.", "b2bcb421f0f8b2936a041f13e0120f0e"),
        ("-", "61dead108ec4078657afc96e224b9a8f"),
        ("--- x", "af377e6b6940e193162cb1b9a7c53e56"),
        ("?", "dfae968f30dcca56029217d52a72bdd5"),
        ("? x", "d08ea725181fcf2fe5379948ff269df6"),
        (":x", "306ff427c05f6c9620b0f699fe2b7307"),
        ("a\\b", "1e9616db98207435cc831447a18c8481"),
        ("12345678901234567890123", "e16493eb21196d43d52d3c93718268e5"),
        ("0x1F  ", "65702eeeb348ca1c8d405cbe62d10a3c"),
    ];
    let short = short.map(|(text, digest)| (text.to_owned(), digest));
    for (text, digest) in long.into_iter().chain(short) {
        assert_eq!(digest_of(&json!({"k": text})), digest, "{text:?}");
    }
}

#[test]
fn keys_have_the_order_that_kapp_gives_them() {
    let cases = [
        ("B a-b a.b a_b a1 a2 a10 ab b x.y-z", "addfa6b2dc07ffaa2a712258ac6f0224"),
        ("true 01 1x B b", "ec4619036f3311c1196e885193fb962a"),
        ("a-b a.b a_b a1 ab a1b a10", "eea87ec881c3b48783f51256c7c72acd"),
    ];
    for (keys, digest) in cases {
        let given: Map<String, Value> = keys.split(' ').map(|key| (key.to_owned(), "v".into())).collect();
        assert_eq!(digest_of(&given.into()), digest, "{keys}");
    }
}

#[test]
fn fields_that_a_config_leaves_out_do_not_change_the_digest() {
    let object = |seen: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "a", "annotations": {"example.com/seen-at": seen, "mine": "1"}}})
    };
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "annotations": {"mine": "1"}}});
    let path = ["metadata", "annotations", "example.com/seen-at"]
        .map(|key| pushback_manifest::config::PathPart::Key(key.to_owned()));
    let rule = PathRule { path: path.to_vec(), matchers: vec![pushback_manifest::config::Matcher::All] };
    let config = Config { last_applied_exclusions: vec![rule], ..Config::default() };
    let digests = [&rules(), &Rules::of(&config)].map(|rules| {
        let [first, second] = [object("1"), object("2")].map(|object| rules.digest(&object, &manifest));
        first == second
    });
    assert_eq!(digests, [false, true]);
}
