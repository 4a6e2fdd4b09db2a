//! The command line of a run, so that a remedy can give it back with another option.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The options that say which cluster is meant and as whom, with the name that kubectl has for them; it has none for a
/// folder.
const CONNECTION: [(&str, Option<&str>); 5] = [
    ("--cluster", None),
    ("--kubeconfig", Some("--kubeconfig")),
    ("--kubeconfig-context", Some("--context")),
    ("--as", Some("--as")),
    ("--as-group", Some("--as-group")),
];

/// The arguments of a run, without the program's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Invocation(Vec<String>);

impl Invocation {
    /// The command line with these arguments.
    #[must_use]
    pub fn new(arguments: impl IntoIterator<Item = String>) -> Self {
        Self(arguments.into_iter().collect())
    }

    /// Whether it is not known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with `--name=value` in place of what it says of the option.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let mut changed = self.without(name);
        changed.0.push(format!("{name}={value}"));
        changed
    }

    /// The same with a flag.
    #[must_use]
    pub fn with_flag(&self, name: &str) -> Self {
        let mut changed = self.clone();
        changed.0.push(name.to_owned());
        changed
    }

    /// Returns the command line with `--name=value` besides the other values of the option.
    #[must_use]
    pub fn with_another(&self, name: &str, value: &str) -> Self {
        if self.split(name).1.iter().any(|given| given == value) {
            return self.clone();
        }
        self.with_flag(&format!("{name}={value}"))
    }

    /// The same without an option and its value.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        Self(self.split(name).0)
    }

    /// The last value that it gives an option.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        self.split(name).1.pop()
    }

    /// Another command for the same cluster and user, which asks as much as this one.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Self {
        let asks_nothing = self.0.iter().any(|argument| argument == "--yes" || argument == "-y");
        let own = words.iter().copied().chain(asks_nothing.then_some("--yes")).map(str::to_owned);
        let connection = CONNECTION
            .iter()
            .flat_map(|(name, _)| self.split(name).1.into_iter().map(move |value| format!("{name}={value}")));
        Self(own.chain(connection).collect())
    }

    /// `kubectl VERB …` for the same cluster and user.
    #[must_use]
    pub fn kubectl(&self, words: &[&str]) -> String {
        let own = words.iter().map(|word| quoted(word));
        let connection =
            CONNECTION.iter().filter_map(|(name, named)| Some((name, (*named)?))).flat_map(|(name, named)| {
                self.split(name).1.into_iter().map(move |value| quoted(&format!("{named}={value}")))
            });
        let words: Vec<String> = own.chain(connection).collect();
        format!("kubectl {}", words.join(" "))
    }

    /// The arguments beside an option, and the values of the option.
    fn split(&self, name: &str) -> (Vec<String>, Vec<String>) {
        let (mut rest, mut values) = (Vec::new(), Vec::new());
        let mut arguments = self.0.iter();
        while let Some(argument) = arguments.next() {
            if argument == name {
                values.extend(arguments.next().cloned());
            } else if let Some(value) = argument.strip_prefix(name).and_then(|tail| tail.strip_prefix('=')) {
                values.push(value.to_owned());
            } else {
                rest.push(argument.clone());
            }
        }
        (rest, values)
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("pushback")?;
        if self.0.first().is_none_or(|first| first.starts_with('-')) {
            f.write_str(" apply")?;
        }
        self.0.iter().try_for_each(|argument| write!(f, " {}", quoted(argument)))
    }
}

/// An argument as a POSIX shell takes it.
#[must_use]
pub fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn invocation(text: &str) -> Invocation {
        Invocation::new(text.split(' ').map(str::to_owned))
    }

    #[test]
    fn an_option_takes_the_place_of_the_one_that_was_given() {
        let given = invocation("apply -a shop --storage refuse -f new");
        assert_eq!(given.with("--storage", "bridge").to_string(), "pushback apply -a shop -f new --storage=bridge");
        assert_eq!(
            invocation("apply --as-group a").with("--as", "b").to_string(),
            "pushback apply --as-group a --as=b"
        );
        assert_eq!(Invocation::default().with("--storage", "bridge").to_string(), "pushback apply --storage=bridge");
    }

    #[test]
    fn another_value_of_an_option_is_added_once() {
        let given = invocation("apply --waive a=b");
        let both = given.with_another("--waive", "c=d e");
        assert_eq!(both.to_string(), "pushback apply --waive a=b '--waive=c=d e'");
        assert_eq!(both.with_another("--waive", "a=b").with_another("--waive", "c=d e"), both);
    }

    #[test]
    fn other_commands_are_for_the_same_cluster_and_user() {
        let given = invocation("apply -a shop --kubeconfig k --kubeconfig-context=prod -f new");
        let other = given.command(&["storage", "migrate", "a.ex.com"]);
        assert_eq!(other.to_string(), "pushback storage migrate a.ex.com --kubeconfig=k --kubeconfig-context=prod");
        assert_eq!(given.kubectl(&["get", "pods"]), "kubectl get pods --kubeconfig=k --context=prod");
        let unattended = invocation("apply -a shop --yes").command(&["storage", "remove", "a.ex.com", "v1"]);
        assert_eq!(unattended.to_string(), "pushback storage remove a.ex.com v1 --yes");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_shell_reads_what_was_quoted(argument in "[ -~é\n]{0,12}") {
            let output = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(&argument))]).output();
            let output = output.expect("sh");
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), argument);
        }
    }
}
