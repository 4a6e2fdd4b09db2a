//! What is wrong around the manifests: Config, arguments, clusters, reports.

use super::text::{bomb, huge, link};
use super::{GOOD, arguments, cluster, config, more, transcript};
use crate::support::{TestCase, cases};

pub(super) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: config_that_is_wrong,
        Nothing: arguments_that_make_no_sense,
        Nothing: clusters_that_are_none,
        Nothing: reports_that_cannot_be_written,
    ]
}

fn config_that_is_wrong() {
    let cases = vec![
        config("an unknown key", "preflightRulez: []\n"),
        config("an unknown key inside", "preflightRules:\n- nmae: CRDUpgradeSafety\n"),
        config("a rule that is misspelt", "preflightRules:\n- name: CRDUpgradeSafty\n"),
        config("a rule twice", "preflightRules:\n- name: CRDUpgradeSafety\n- name: CRDUpgradeSafety\n"),
        config("a setting that is misspelt", "preflightRules:\n- name: CRDUpgradeSafety\n  config: {mod: warn}\n"),
        config("a value that is not known", "preflightRules:\n- name: CRDUpgradeSafety\n  config: {mode: off}\n"),
        config("`none` as a rule", "preflightRules:\n- name: none\n"),
        config(
            "a matcher that is misspelt",
            "rebaseRules:\n- path: [a]\n  type: copy\n  sources: [new]\n  resourceMatchers:\n  - allMatchers: {}\n",
        ),
        config("a waiver without a reason", "preflightWaivers:\n- rule: CRDUpgradeSafety\n"),
        config("a version that does not exist yet", "minimumRequiredVersion: 99.0.0\n"),
        config("a name with an escape sequence", "preflightRules:\n- name: \"\\e[2JCRD\"\n"),
        config("no YAML", "preflightRules: [\n"),
        more("a Config file that is none", &["--config", "in.yaml"]),
    ];
    insta::assert_snapshot!(transcript(cases), @r#"
    # an unknown key
    error: config.yaml:3:1: preflightRulez: unknown key
    hint: did you mean `preflightRules`?

    # an unknown key inside
    error: config.yaml:4:3: preflightRules[0].nmae: unknown key
      config.yaml:4:3: preflightRules[0]: missing key `name`
    hint: did you mean `name`?

    # a rule that is misspelt
    error: config.yaml:4:3: unknown preflight rule "CRDUpgradeSafty"; did you mean "CRDUpgradeSafety"?
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # a rule twice
    error: config.yaml:5:3: rule "CRDUpgradeSafety" is listed twice, first at config.yaml:4:3
    hint: keep one entry, with the settings that you want

    # a setting that is misspelt
    error: config.yaml:5:12: preflight rule "CRDUpgradeSafety": mod: unknown key
    hint: did you mean `mode`?
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # a value that is not known
    error: config.yaml:5:12: preflight rule "CRDUpgradeSafety": mode: expected `error` or `warn`, found false
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # `none` as a rule
    error: config.yaml:4:3: unknown preflight rule "none"; to run no rule, write `preflightRules: []`
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # a matcher that is misspelt
    error: config.yaml:8:5: rebaseRules[0].resourceMatchers[0].allMatchers: unknown key
    hint: did you mean `allMatcher`?

    # a waiver without a reason
    error: config.yaml:4:3: preflightWaivers[0]: missing key `reason`

    # a version that does not exist yet
    error: config.yaml:3:1: minimumRequiredVersion: version 99.0.0 or later is required; this is pushback 0.1.0
    hint: use a newer release, or lower minimumRequiredVersion

    # a name with an escape sequence
    error: config.yaml:4:3: unknown preflight rule "\u{1b}[2JCRD"; known are CRDUpgradeSafety, StoredVersions, PermissionValidation, References, PodAdmission, RemovedAPIs, FieldConflicts, DestructiveChange, UpgradeDiff, ExistingObjects, ConversionRoundTrip, ImagesExist
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # no YAML
    error: config.yaml:3:17: `[` is not closed
    hint: Add the closing bracket.

    # a Config file that is none
    error: in.yaml:1:1: expected a Config document or a ConversionPlan
    hint: It starts with `apiVersion: pushback.dev/v1alpha1` (or kapp.k14s.io/v1alpha1) and `kind: Config`.
    hint: Objects to apply are given with `-f`.
    "#);
}

fn arguments_that_make_no_sense() {
    let apply = ["apply", "-f", "in.yaml", "--cluster", "dir:live"];
    let check = ["check", "-a", "bad", "-f", "in.yaml", "--cluster", "dir:live"];
    let with = |title, more: &[&'static str]| arguments(title, &[&check[..], more].concat());
    let cases = vec![
        arguments("no app", &apply),
        arguments("no input", &["apply", "-a", "bad", "--cluster", "dir:live"]),
        arguments("an app name that is none", &[&apply[..], &["-a", "Shop!"]].concat()),
        arguments("an app name with an escape sequence", &[&apply[..], &["-a", "\u{1b}[2J"]].concat()),
        arguments("an app by more than one label", &[&apply[..], &["-a", "label:a=b,c=d"]].concat()),
        arguments("no confirmation", &[&apply[..], &["-a", "bad"]].concat()),
        more("a flag that is misspelt", &["--wait-timout=5m"]),
        more("a flag that is no flag", &["--\u{1b}[31mred"]),
        more("a time without a unit", &["--wait-timeout", "30"]),
        more("a format that is none", &["--color", "pink"]),
        more("a mapping that is none", &["--map-ns", "shop"]),
        with("a rule that is misspelt", &["--preflight=CRDUpgradeSafty"]),
        with("a rule twice", &["--preflight=CRDUpgradeSafety", "--preflight", "CRDUpgradeSafety"]),
        with("a rule and none", &["--preflight=CRDUpgradeSafety,none"]),
        with("rules, and those of the Config", &["--preflight", "--preflight=CRDUpgradeSafety"]),
        with("a waiver without a reason", &["--waive", "9c1185a5"]),
        with("a group without a user", &["--as-group", "admins"]),
        with("an argument too many", &["in.yaml"]),
    ];
    insta::assert_snapshot!(transcript(cases), @r#"
    # no app
    error: the following required arguments were not provided:
      --app <NAME>

    Usage: pushback apply --file <PATH> --cluster <CLUSTER> --app <NAME>

    For more information, try '--help'.

    # no input
    error: -f: no input is given
    hint: Give files, directories or URLs with `-f`, or `-f -`.

    # an app name that is none
    error: invalid value 'Shop!' for '--app <NAME>': expected lower-case letters, digits, - and ., at most 240, with a letter or digit at both ends

    For more information, try '--help'.

    # an app name with an escape sequence
    error: invalid value '\u{1b}[2J' for '--app <NAME>': expected lower-case letters, digits, - and ., at most 240, with a letter or digit at both ends

    For more information, try '--help'.

    # an app by more than one label
    error: invalid value 'label:a=b,c=d' for '--app <NAME>': expected label:KEY=VALUE, a single label with its value

    For more information, try '--help'.

    # no confirmation
    Apply bad to dir:live, namespace default: 1 to create? [y/N] 

    error: not confirmed: there is nobody to ask; answer on standard input, or use --yes
    Stopped: nothing was written.

    # a flag that is misspelt
    error: unexpected argument '--wait-timout' found

      tip: a similar argument exists: '--wait-timeout'

    Usage: pushback apply --app <NAME> --file <PATH> --cluster <CLUSTER> --yes --wait-timeout <DURATION>

    For more information, try '--help'.

    # a flag that is no flag
    error: unexpected argument '--\u{1b}[31mred' found

    Usage: pushback apply --app <NAME> --file <PATH> --cluster <CLUSTER> --yes

    For more information, try '--help'.

    # a time without a unit
    error: invalid value '30' for '--wait-timeout <DURATION>': expected a duration such as 90s, 5m or 1h30m

    For more information, try '--help'.

    # a format that is none
    error: invalid value 'pink' for '--color <WHEN>': expected auto, always or never

    For more information, try '--help'.

    # a mapping that is none
    error: invalid value 'shop' for '--map-ns <A=B>': expected A=B, for example staging=prod

    For more information, try '--help'.

    # a rule that is misspelt
    error: --preflight: unknown preflight rule "CRDUpgradeSafty"; did you mean "CRDUpgradeSafety"?
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # a rule twice
    error: --preflight: rule "CRDUpgradeSafety" is named more than once
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # a rule and none
    error: --preflight: "none" switches all rules off and cannot be combined with other names
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # rules, and those of the Config
    error: --preflight is given both alone and with rule names; give the names only, or no names at all
    hint: `pushback rules` lists the rules, `pushback rules NAME` explains one

    # a waiver without a reason
    error: invalid value '9c1185a5' for '--waive <FINGERPRINT[@COUNT]=REASON>': expected FINGERPRINT=REASON, and a reason is never empty

    For more information, try '--help'.

    # a group without a user
    error: the following required arguments were not provided:
      --as <USER>

    Usage: pushback check --as <USER> --app <NAME> --file <PATH> --cluster <CLUSTER> --as-group <GROUP>

    For more information, try '--help'.

    # an argument too many
    error: unexpected argument 'in.yaml' found

    Usage: pushback check [OPTIONS]

    For more information, try '--help'.
    hint: files and folders are given with -f: -f in.yaml
    "#);
}

fn clusters_that_are_none() {
    let cases = vec![
        cluster("a word", "wrong", |_| {}),
        cluster("a word with an escape sequence", "\u{1b}[2J", |_| {}),
        cluster("a folder without a name", "dir:", |_| {}),
        cluster("a folder that is a file", "dir:in.yaml", |_| {}),
        cluster("a folder inside a file", "dir:in.yaml/live", |_| {}),
        cluster("a folder that is a link to itself", "dir:loop", |pushback| link(pushback, "loop", "loop")),
        cluster("a folder with a broken manifest", "dir:live", |pushback| {
            pushback.write("live/broken.yaml", "a: [1\n");
        }),
        cluster("a folder with a huge manifest", "dir:live", |pushback| huge(pushback, "live/huge.yaml")),
        cluster("a folder with a bomb", "dir:live", |pushback| {
            pushback.write("live/bomb.yaml", bomb());
        }),
        cluster("a folder with an object twice", "dir:live", |pushback| {
            pushback.write("live/a.yaml", GOOD).write("live/b.yaml", GOOD);
        }),
        cluster("a folder whose record is damaged", "dir:live", |pushback| {
            let record = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: bad\n  namespace: default\n  \
                          labels: {kapp.k14s.io/is-app: \"\"}\ndata: {spec: \"{\"}\n";
            pushback.write("live/.pushback/default/bad.yaml", record);
        }),
        cluster("a ref without a name", "git:", |_| {}),
        cluster("a ref without a repository", "git:HEAD", |_| {}),
        cluster("a ref that does not exist", "git:absent", |pushback| {
            pushback.shell("git", &["init", "--quiet"]);
        }),
        cluster("a ref that is an option", "git:--output=x", |pushback| {
            pushback.shell("git", &["init", "--quiet"]);
        }),
        cluster("a folder that the ref does not have", "git:HEAD:absent", |pushback| {
            pushback.shell("git", &["init", "--quiet"]);
            pushback.shell("git", &["commit", "--quiet", "--allow-empty", "--message=x"]);
        }),
        cluster("a ref that cannot be written", "git:HEAD", |pushback| {
            pushback.shell("git", &["init", "--quiet"]);
            pushback.shell("git", &["commit", "--quiet", "--allow-empty", "--message=x"]);
        }),
    ];
    insta::assert_snapshot!(transcript(cases), @r#"
    # a word
    error: --cluster "wrong" is unknown
    hint: expected kube, dir:PATH, file:PATH, git:REF[:PATH], kustomize:DIR, helm:CHART or oci://REGISTRY/REPOSITORY
    hint: a context of the kubeconfig is chosen with --kubeconfig-context wrong

    # a word with an escape sequence
    error: --cluster "\u{1b}[2J" is unknown
    hint: expected kube, dir:PATH, file:PATH, git:REF[:PATH], kustomize:DIR, helm:CHART or oci://REGISTRY/REPOSITORY
    hint: a context of the kubeconfig is chosen with --kubeconfig-context '\u{1b}[2J'

    # a folder without a name
    error: --cluster dir: names no folder, expected dir:PATH

    # a folder that is a file
    error: file:in.yaml is read only
    Stopped: nothing was written.
    hint: `pushback check` and `pushback diff` answer from it; to write, name a folder: --cluster dir:PATH

    # a folder inside a file
    error: in.yaml/live: cannot be read: not a directory

    # a folder that is a link to itself
    error: loop: cannot be read: too many levels of symbolic links

    # a folder with a broken manifest
    error: live/broken.yaml:1: `[` is not closed

    # a folder with a huge manifest
    error: live/huge.yaml: larger than 64 MiB, the limit of one file

    # a folder with a bomb
    error: live/bomb.yaml:7: aliases make the input grow by more than 64 MiB

    # a folder with an object twice
    error: ConfigMap shop/good is given twice: in live/a.yaml:1 and in live/b.yaml:1; keep one of them

    # a folder whose record is damaged
    error: the record ConfigMap default/bad is damaged: data.spec is no JSON: EOF while parsing an object at line 1 column 1
    Stopped: nothing was written.

    # a ref without a name
    error: --cluster git: names no ref, expected git:REF or git:REF:PATH

    # a ref without a repository
    error: git HEAD: not a git repository

    # a ref that does not exist
    error: git absent: the repository has no such ref

    # a ref that is an option
    error: "--output=x" with path "" is not a git ref and folder

    # a folder that the ref does not have
    error: git HEAD:absent: the ref has no such path

    # a ref that cannot be written
    error: git:HEAD is read only
    Stopped: nothing was written.
    hint: `pushback check` and `pushback diff` answer from it; to write, name a folder: --cluster dir:PATH
    "#);
}

fn reports_that_cannot_be_written() {
    let cases = vec![
        more("no format", &["--report", "report.json"]),
        more("a format that is none", &["--report", "jsn=report.json"]),
        more("a folder that does not exist", &["--report", "json=absent/report.json"]),
        more("a folder as file", &["--report", "json=."]),
        more("one file twice", &["--report", "json=report.json", "--report", "json=report.json"]),
        more("one file twice, by two paths", &["--report", "json=report.json", "--report", "json=./report.json"]),
    ];
    insta::assert_snapshot!(transcript(cases), @"
    # no format
    error: report `report.json` is not FORMAT=PATH, such as json=report.json

    # a format that is none
    error: unknown report format `jsn`; known: json, junit, sarif, markdown, github, html

    # a folder that does not exist
    error: cannot write report absent/report.json: no such file or directory
    hint: create the folder first: mkdir -p absent

    # a folder as file
    error: cannot write report .: is a directory

    # one file twice
    error: two reports go to report.json

    # one file twice, by two paths
    error: two reports go to ./report.json
    ");
}
