//! Rule ImagesExist: each image of a new or changed Pod exists in its registry, for the platforms of the nodes.

use std::collections::{BTreeMap, BTreeSet};

use pushback_objects::finding::{Finding, Verdict};
use pushback_objects::pod_template::pod_template_path;
use pushback_objects::source::{PathSegment, display_path};
use serde::Deserialize;
use serde_json::Value;

use crate::facts::{Answer, Change, ChangeSet, Facts, ImageLookup, Need, Needs};
use crate::rule::{Checked, Judgement, Memory, Order, Rule, RuleMeta, Setting, SettingKind, Settings};
use crate::session::needs_a_server;

const NAME: &str = "ImagesExist";
const MISSING: &str = "missing";
const PLATFORM: &str = "platform";
const INVALID: &str = "invalid";
/// The check for images that were not judged.
const NOT_CHECKED: &str = "notChecked";

/// Platform of nodes, unless settings name others.
const DEFAULT_PLATFORM: &str = "linux/amd64";

/// Most images that a note names.
const NAMED: usize = 5;

/// The rule itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImagesExist;

static META: RuleMeta = RuleMeta {
    name: NAME,
    summary: "each image of a new or changed Pod exists in its registry, for the platforms of the nodes",
    docs: include_str!("images_exist/docs.md"),
    checks: &[
        (MISSING, "the registry has no such image"),
        (PLATFORM, "the image exists, and not for a platform of the nodes"),
        (INVALID, "the name of an image, or the registry's answer about it, is invalid"),
        (NOT_CHECKED, "images were not checked, for the reason given"),
    ],
    settings: &[Setting {
        name: "platforms",
        doc: "platforms of the nodes, such as `linux/arm64`; an image must exist for each. Without any, `linux/amd64`",
        kind: SettingKind::Texts(&[]),
        order: Order::Unordered,
    }],
    needs: "a request for the manifest of each image that the live object does not have, and for the configuration of one \
            without an index, to its registry, with the user's credentials",
    default: false,
    on_directory: false,
    judges_manifests_only: true,
    ..RuleMeta::COMMON
};

/// The rule's own settings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnSettings {
    platforms: Vec<String>,
}

/// An image in a Pod or a Pod template.
#[derive(Clone, Debug)]
struct UsedImage<'a> {
    change: &'a Change,
    image: &'a str,
    path: Vec<PathSegment>,
}

impl Rule for ImagesExist {
    fn meta(&self) -> &'static RuleMeta {
        &META
    }

    fn plan(&self, _changes: &ChangeSet, _settings: &Settings) -> Needs {
        // A folder is asked nothing, and only `check` knows of it.
        Needs::new()
    }

    fn check(&self, facts: &Facts, settings: &Settings, _memory: &mut Memory) -> Checked {
        if !facts.are_of_a_server() {
            return Checked::Skipped(needs_a_server(&facts.cluster));
        }
        let OwnSettings { mut platforms } = settings.own();
        if platforms.is_empty() {
            platforms.push(DEFAULT_PLATFORM.to_owned());
        }
        let images: Vec<UsedImage<'_>> = facts.changes.changes.iter().flat_map(new_images).collect();
        let need = |image: &UsedImage<'_>| Need::Image { image: image.image.to_owned(), platforms: platforms.clone() };
        let open: Needs = images.iter().map(need).filter(|need| !facts.answers.contains_key(need)).collect();
        if !open.is_empty() {
            return Checked::More(open);
        }
        let mut verdicts = Verdicts::default();
        for image in images {
            verdicts.add(&image, facts.answers.get(&need(&image)));
        }
        verdicts.close()
    }
}

/// The images of a change that its live object does not have.
fn new_images(change: &Change) -> Vec<UsedImage<'_>> {
    let Some(place) = pod_template_path(&change.object.group, &change.object.kind) else { return Vec::new() };
    if !change.operation.applies() {
        return Vec::new();
    }
    let known: BTreeSet<&str> =
        change.live.as_deref().map(|live| images(live, place)).unwrap_or_default().into_iter().map(|it| it.0).collect();
    let used = change.desired.as_deref().map(|desired| images(desired, place)).unwrap_or_default();
    let is_new = |(image, _): &(&str, Vec<PathSegment>)| !known.contains(image);
    used.into_iter().filter(is_new).map(|(image, path)| UsedImage { change, image, path }).collect()
}

/// The images of the Pod or template at a place, each with its path: those of containers and of volumes.
fn images<'a>(object: &'a Value, place: &[&'static str]) -> Vec<(&'a str, Vec<PathSegment>)> {
    let pod = place.iter().try_fold(object, |value, field| value.get(field));
    let spec = pod.and_then(|pod| pod.get("spec"));
    let lists: [(&str, &[&str]); 3] =
        [("initContainers", &["image"]), ("containers", &["image"]), ("volumes", &["image", "reference"])];
    let mut found = Vec::new();
    for (list, fields) in lists {
        let items = spec.and_then(|spec| spec.get(list)).and_then(Value::as_array);
        for (index, item) in items.into_iter().flatten().enumerate() {
            let image = fields.iter().try_fold(item, |value, field| value.get(field)).and_then(Value::as_str);
            let Some(image) = image.filter(|image| !image.is_empty()) else { continue };
            let mut path: Vec<PathSegment> = place.iter().map(|field| PathSegment::from(*field)).collect();
            path.extend(["spec".into(), list.into(), index.into()]);
            path.extend(fields.iter().map(|field| PathSegment::from(*field)));
            found.push((image, path));
        }
    }
    found
}

/// The results for all images.
#[derive(Default)]
struct Verdicts<'a> {
    judged: usize,
    findings: Vec<Finding>,
    /// Images without a verdict, by reason.
    unchecked: BTreeMap<String, Vec<UsedImage<'a>>>,
}

impl<'a> Verdicts<'a> {
    fn add(&mut self, image: &UsedImage<'a>, answer: Option<&Answer>) {
        let lookup = match answer {
            Some(Answer::Image { lookup }) => lookup,
            Some(Answer::Unable { reason }) => return self.unchecked(reason.clone(), image),
            _ => return self.unchecked("the answer does not fit the question".to_owned(), image),
        };
        let (check, message, remedy) = match lookup {
            ImageLookup::Found => {
                self.judged += 1;
                return;
            }
            ImageLookup::Absent => {
                (MISSING, format!("the registry has no image {}", image.image), "push the image, or correct its name")
            }
            ImageLookup::Lacks { missing, found } => (
                PLATFORM,
                format!("{} does not exist for {}, only for {}", image.image, missing.join(", "), found.join(", ")),
                "push the image for this platform, or set `platforms` to those of the nodes",
            ),
            ImageLookup::Invalid { message } => {
                (INVALID, format!("{} cannot be looked up: {message}", image.image), "correct the name of the image")
            }
            ImageLookup::Denied { registry, message } => {
                return self.unchecked(format!("{registry}: {message}; the nodes may have others"), image);
            }
            ImageLookup::Throttled { registry, message } | ImageLookup::Unreachable { registry, message } => {
                return self.unchecked(format!("{registry}: {message}"), image);
            }
        };
        self.judged += 1;
        let verdict = if check == INVALID { Verdict::Unknown } else { Verdict::Breaking };
        self.findings.push(finding(image, check, verdict, message).remedy(remedy));
    }

    fn unchecked(&mut self, reason: String, image: &UsedImage<'a>) {
        self.unchecked.entry(reason).or_default().push(image.clone());
    }

    fn close(mut self) -> Checked {
        if self.judged == 0 && !self.unchecked.is_empty() {
            return Checked::Skipped(self.unchecked.into_keys().collect::<Vec<_>>().join("; "));
        }
        for (reason, images) in self.unchecked {
            let Some(first) = images.first() else { continue };
            let message = format!("not checked: {}: {reason}", names(&images));
            self.findings.push(finding(first, NOT_CHECKED, Verdict::Change, message));
        }
        Checked::Done(Judgement { findings: self.findings, unable: Vec::new() })
    }
}

fn finding(image: &UsedImage<'_>, check: &str, verdict: Verdict, message: String) -> Finding {
    Finding::new(NAME, check, verdict, image.change.object.clone(), message)
        .at(image.change.locate(&image.path))
        .path(display_path(&image.path))
        .values(None, Some(image.image.into()))
}

fn names(images: &[UsedImage<'_>]) -> String {
    let all: BTreeSet<&str> = images.iter().map(|image| image.image).collect();
    let mut names: Vec<String> = all.iter().take(NAMED).map(|image| (*image).to_owned()).collect();
    if all.len() > names.len() {
        names.push(format!("{} more", all.len() - names.len()));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests;
