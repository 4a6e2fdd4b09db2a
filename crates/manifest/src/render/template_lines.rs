//! Lines of a rendered chart in the templates that they come from: Helm names the template before each document, and
//! lines that it copies or fills in are found in their order.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pushback_objects::source::Positions;

use crate::files::check_size;

/// Helm's comment before the documents of a template.
const SOURCE: &str = "# Source: ";

/// Lines of a template that may follow without being in the output, for a line that occurs more than once.
const NEAR: usize = 30;

/// The templates of a rendered text.
#[derive(Debug, Default)]
pub(crate) struct TemplateLines {
    /// Parts of the text, in order.
    sections: Vec<Section>,
}

/// The part of the text that comes from one template.
#[derive(Debug)]
struct Section {
    /// Its first line, from 1.
    first: u32,
    /// The template's name for messages; `None` if it is not on this machine.
    file: Option<Arc<str>>,
    /// For each line of the part: the line of the template from 1, and its indentation; 0 if it is not known.
    lines: Vec<(u32, u32)>,
}

impl TemplateLines {
    /// Reads the templates of a chart's folder that a rendered text names.
    pub(super) fn read(rendered: &[u8], chart: &Path, shown: impl Fn(&Path) -> String) -> Self {
        let text = String::from_utf8_lossy(rendered);
        let lines: Vec<&str> = text.lines().collect();
        let starts: Vec<usize> =
            (1..lines.len()).filter(|at| lines[*at].starts_with(SOURCE) && lines[at - 1].trim_end() == "---").collect();
        let mut templates: HashMap<&str, Option<(Arc<str>, Template)>> = HashMap::new();
        let mut sections = Vec::new();
        for (number, start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).map_or(lines.len(), |next| next - 1);
            let named = lines[*start].trim_start_matches(SOURCE).trim();
            let template = templates.entry(named).or_insert_with(|| {
                // The first part of the name is that of the chart.
                let path = named.split_once('/').map(|(_, path)| chart.join(path))?;
                let is_below = path.components().all(|part| part != std::path::Component::ParentDir);
                let is_small = fs::metadata(&path).is_ok_and(|it| check_size("", it.len()).is_ok());
                let text = (is_below && is_small).then(|| fs::read_to_string(&path).ok()).flatten()?;
                Some((shown(&path).into(), Template::new(&text)))
            });
            let part = &lines[start + 1..end];
            sections.push(Section {
                first: u32::try_from(start + 2).unwrap_or(u32::MAX),
                file: template.as_ref().map(|(file, _)| Arc::clone(file)),
                lines: template.as_ref().map(|(_, template)| template.align(part)).unwrap_or_default(),
            });
        }
        Self { sections }
    }

    /// Returns the positions of a document in its template.
    pub(super) fn relocate(&self, rendered: &Positions) -> Option<Positions> {
        let start = rendered.start().line;
        let section = self.sections.iter().rev().find(|section| section.first <= start)?;
        let file = section.file.as_ref()?;
        Some(rendered.relocated(Arc::clone(file), |line, column| {
            let (line, shift) = *section.lines.get(usize::try_from(line.checked_sub(section.first)?).ok()?)?;
            (line > 0).then(|| (line, column.saturating_sub(shift).max(1)))
        }))
    }
}

/// A template by its lines.
#[derive(Debug)]
struct Template {
    lines: Vec<String>,
    /// Numbers of the lines of a text, ascending.
    by_text: HashMap<String, Vec<usize>>,
}

impl Template {
    fn new(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut by_text: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, line) in lines.iter().enumerate() {
            by_text.entry(line.trim().to_owned()).or_default().push(number);
        }
        Self { lines, by_text }
    }

    /// Returns the line from which each rendered line comes, from 1, and by how many columns it was moved to the right.
    fn align(&self, rendered: &[&str]) -> Vec<(u32, u32)> {
        let mut next = 0;
        let found = |line: &str, number: usize| {
            let shift = indentation(line).saturating_sub(indentation(&self.lines[number]));
            (u32::try_from(number + 1).unwrap_or_default(), shift)
        };
        rendered
            .iter()
            .map(|line| {
                let text = line.trim();
                if text.is_empty() {
                    return (0, 0);
                }
                let Some(number) = self.following(text, next) else { return (0, 0) };
                next = number + 1;
                found(line, number)
            })
            .collect()
    }

    /// The line that a rendered one comes from, at `next` or behind it.
    fn following(&self, text: &str, next: usize) -> Option<usize> {
        let same = self.by_text.get(text).map(Vec::as_slice).unwrap_or_default();
        let exact = same.get(same.partition_point(|number| *number < next)).copied();
        let limit = self.lines.len().min(next + NEAR);
        let exact = exact.filter(|number| same.len() == 1 || *number < limit);
        let filled = (next..limit.min(exact.unwrap_or(limit))).find(|number| is_filled_in(&self.lines[*number], text));
        filled.or(exact)
    }
}

/// Returns whether a line of a template can become a rendered one: it fills in the value of the same key.
fn is_filled_in(template: &str, rendered: &str) -> bool {
    let template = template.trim();
    let key = |line: &str| line.split_once(':').map(|(key, _)| key.trim_start_matches("- ").to_owned());
    let is_key = |key: &str| !key.is_empty() && !key.contains("{{");
    template.contains("{{") && key(template).is_some_and(|it| is_key(&it) && Some(it) == key(rendered))
}

fn indentation(line: &str) -> u32 {
    u32::try_from(line.chars().take_while(|c| *c == ' ').count()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_and_filled_in_lines_are_found_in_their_order() {
        let template = Template::new(
            "{{- if .Values.crds }}\nkind: Widget\nmetadata:\n  name: {{ .Release.Name }}\n  labels:\n    {{- include \"labels\" . | nindent 4 }}\nspec:\n  a:\n    type: string\n  b:\n    type: string\n{{- end }}\n",
        );
        let rendered = [
            "kind: Widget",
            "metadata:",
            "  name: web",
            "  labels:",
            "    app: web",
            "spec:",
            "    a:",
            "      type: string",
            "    b:",
            "      type: string",
        ];
        let lines: Vec<u32> = template.align(&rendered).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 0, 7, 8, 9, 10, 11]);
        assert_eq!(template.align(&["      type: string"]), [(9, 2)]);
    }
}
