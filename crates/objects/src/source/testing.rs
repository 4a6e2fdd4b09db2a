//! Positions for tests: made up, and unique for each node.

use serde_json::Value;

use super::{PathSegment, Positions, PositionsBuilder};

/// Gives every node its own line number, in document order.
pub fn numbered(value: &Value, file: &str) -> Positions {
    fn visit(value: &Value, segment: &PathSegment, line: &mut u32, builder: &mut PositionsBuilder) {
        *line += 1;
        builder.open(segment, *line, 1);
        match value {
            Value::Object(map) => {
                map.iter().for_each(|(key, value)| visit(value, &key.as_str().into(), line, builder));
            }
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(index, value)| visit(value, &index.into(), line, builder));
            }
            _ => {}
        }
        builder.close();
    }
    let mut builder = PositionsBuilder::new(file.into());
    visit(value, &"".into(), &mut 0, &mut builder);
    builder.finish()
}
