//! kapp's `tools`: what it prints of files, word for word.

use crate::support::{Pushback, Ran, TestCase, cases};

pub(crate) fn tests() -> Vec<TestCase> {
    cases![
        Nothing: the_objects_of_a_file_are_listed_as_kapp_lists_them,
        Nothing: two_files_are_compared_as_kapp_compares_them,
        Nothing: the_same_commands_answer_in_our_own_words,
    ]
}

const OLD: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: x}
data: {k: v, m: \"1\"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gone}
data: {k: v}
---
apiVersion: v1
kind: Secret
metadata: {name: s, namespace: x}
stringData: {p: hidden}
---
apiVersion: v1
kind: Namespace
metadata: {name: x}
";

fn files() -> Pushback {
    let pushback = Pushback::new();
    pushback.write("old.yaml", OLD);
    let new = OLD.replace("k: v, m", "k: w, m").replace("name: gone", "name: new").replace("hidden", "other");
    pushback.write("new.yaml", new);
    pushback
}

#[track_caller]
fn as_kapp(line: &str) -> Ran {
    let pushback = files().with("PUSHBACK_VOICE", "kapp").with("KUBECONFIG", "/nonexistent");
    pushback.run(&line.split(' ').collect::<Vec<_>>())
}

fn the_objects_of_a_file_are_listed_as_kapp_lists_them() {
    let listed = as_kapp("tools inspect -f old.yaml --tty").expect(0).stdout;
    let expected = "\
Resources in file 'old.yaml'

Namespace  Name  Kind       Owner  Rs  Ri  Age\x20\x20
(cluster)  gone  ConfigMap  -      -   -   -\x20\x20
^          x     Namespace  -      -   -   -\x20\x20
x          a     ConfigMap  -      -   -   -\x20\x20
^          s     Secret     -      -   -   -\x20\x20

Rs: Reconcile state
Ri: Reconcile information

4 resources

Succeeded
";
    assert_eq!(listed, expected);
    let unsorted = as_kapp("t i -f old.yaml --sort=false --column name,kind").expect(0).stdout;
    assert_eq!(unsorted, "a   \tConfigMap\t\ngone\tConfigMap\t\ns   \tSecret\t\nx   \tNamespace\t\n");
    let one = as_kapp("tools inspect -f old.yaml --filter-kind Secret --raw").expect(0).stdout;
    let masked = "---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: x\nstringData:\n  p: <-- value not shown (#1)\n";
    assert_eq!(one, masked, "unlike kapp's, without the value");
    assert_eq!(as_kapp("tools inspect --tty").expect(0).stdout, "Succeeded\n");
    assert_eq!(as_kapp("tools").expect(1).stderr, "kapp: Error: Use one of available subcommands: diff, inspect\n");
}

fn two_files_are_compared_as_kapp_compares_them() {
    let compared = as_kapp("tools diff -f new.yaml --file2 old.yaml --tty -c").expect(0).stdout;
    let expected = "\
@@ update configmap/a (v1) namespace: x @@
  ...
  1,  1   data:
  2     -   k: v
      2 +   k: w
  3,  3     m: \"1\"
  4,  4   kind: ConfigMap
@@ create configmap/new (v1) cluster @@
      0 + apiVersion: v1
      1 + data:
      2 +   k: v
      3 + kind: ConfigMap
      4 + metadata:
      5 +   name: new
      6 +\x20
@@ update secret/s (v1) namespace: x @@
  ...
  5,  5   stringData:
  6     -   p: <-- value not shown (#1)
      6 +   p: <-- value not shown (#2)
  7,  7  \x20
@@ noop namespace/x (v1) cluster @@

@@ delete configmap/gone (v1) cluster @@
  0     - apiVersion: v1
  1     - data:
  2     -   k: v
  3     - kind: ConfigMap
  4     - metadata:
  5     -   name: gone
  6     -\x20

Changes

Namespace  Name  Kind       Age  Op      Op st.  Wait to  Rs  Ri\x20\x20
(cluster)  gone  ConfigMap  -    delete  ???     -        ok  -\x20\x20
^          new   ConfigMap  -    create  ???     -        -   -\x20\x20
^          x     Namespace  -    -       ???     -        ok  -\x20\x20
x          a     ConfigMap  -    update  ???     -        ok  -\x20\x20
^          s     Secret     -    update  ???     -        ok  -\x20\x20

Op:      1 create, 1 delete, 2 update, 1 noop, 0 exists
Wait to: 0 reconcile, 0 delete, 5 noop

Succeeded
";
    assert_eq!(compared, expected);
    let yaml = as_kapp(
        "tools diff -f new.yaml --file2 old.yaml --changes-yaml --summary=false --filter {\"ops\":[\"create\"]}",
    );
    let created = "---\n# create: configmap/new (v1) cluster (strategy: unknown)\napiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n\
                   metadata:\n  name: new\n\n";
    assert_eq!(yaml.expect(0).stdout, created);
    let same = as_kapp("tools diff -f new.yaml --file2 new.yaml --exit-status").expect(0);
    assert!(same.stderr.contains("without effect here: --exit-status"), "{}", same.stderr);
}

fn the_same_commands_answer_in_our_own_words() {
    let pushback = files();
    let listed = pushback.run(&["tools", "inspect", "-f", "old.yaml", "-o", "json"]).expect(0).json();
    assert_eq!(listed["objects"].as_array().map(Vec::len), Some(4));
    let listed = pushback.run(&["tools", "inspect", "-f", "old.yaml"]).expect(0).stdout;
    assert!(listed.contains("old.yaml:11"), "{listed}");
    let compared = pushback.run(&["tools", "diff", "-f", "new.yaml", "--file2", "old.yaml", "-c"]).expect(0).stdout;
    assert!(
        compared.contains("+  k: w") && compared.contains("Plan: 1 to create, 2 to update, 1 to delete, 1 unchanged."),
        "{compared}"
    );
    assert!(!compared.contains("hidden") && !compared.contains("other"), "{compared}");
    let json = pushback.run(&["tools", "diff", "-f", "new.yaml", "--file2", "old.yaml", "-o", "json"]).expect(0).json();
    assert_eq!(json["changes"].as_array().map(Vec::len), Some(4));
    pushback.run(&["tools", "inspect", "-f", "nothing.yaml"]).expect(1);
}
