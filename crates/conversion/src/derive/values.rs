//! How a value of one version becomes a value of another one, by their types and by what the plan says.

use std::collections::HashMap;
use std::sync::Arc;

use pushback_crd::schema::model::Properties;
use pushback_crd::schema::{Additional, Schema, Type};
use serde_json::Value;

use super::super::operation::Scalar;
use super::super::operation_list::{Loss, OperationKind};
use super::super::path::FieldPath;
use super::super::plan::{Coercion, Keyed, Reshaping};
use super::super::step::Convert;
use super::Deriver;
use super::pairs::{Both, is_opaque};

impl Deriver<'_> {
    /// Both directions between the values of two nodes.
    ///
    /// # Errors
    /// Why neither type is derived from the other.
    pub(super) fn value(
        &mut self,
        older: &Schema,
        newer: &Schema,
        path: &FieldPath,
        new_path: &FieldPath,
    ) -> Result<Both, String> {
        // What is inside a new list has the path of the value that it was.
        let reshaping = self.plan.lists.iter().position(|entry| entry.path == *path);
        if let Some(index) = reshaping.filter(|index| self.used.insert(("lists", *index))) {
            return self.reshaped(index, (older, newer), (path, new_path));
        }
        let plan = self.plan;
        if let Some(index) = plan.coerce.iter().position(|entry| entry.path == *path) {
            self.used.insert(("coerce", index));
            let quantity = plan.coerce[index].value == Coercion::Quantity;
            let (Some(from), Some(to)) = (Scalar::of(older), Scalar::of(newer)) else {
                return Err("only single values are coerced".to_owned());
            };
            if !from.can_become(to) {
                return Err(format!("there is no way from {} to {}", older.type_name(), newer.type_name()));
            }
            self.operation(OperationKind::Coerce, path, new_path, Loss::InBag);
            return Ok((Convert::Scalar { to, quantity }, Convert::Scalar { to: from, quantity }));
        }
        if let Some(index) = plan.enums.iter().position(|entry| entry.path == *path) {
            self.used.insert(("enums", index));
            return self.renamed_values(index, (older, newer), (path, new_path));
        }
        if let (Some(from), Some(to)) = (Scalar::of(older), Scalar::of(newer)) {
            return match from.overlaps(to) {
                _ if from == to => Ok(values_by_case(older, newer)),
                true => {
                    self.operation(OperationKind::Coerce, path, new_path, Loss::InBag);
                    Ok((Convert::Scalar { to, quantity: false }, Convert::Scalar { to: from, quantity: false }))
                }
                false => Err(differ(older, newer)),
            };
        }
        if Scalar::of(older).is_some() || Scalar::of(newer).is_some() {
            return if older.kind.is_none() && !older.int_or_string || newer.kind.is_none() && !newer.int_or_string {
                Ok((Convert::Same, Convert::Same))
            } else {
                Err(differ(older, newer))
            };
        }
        match (older.kind, newer.kind) {
            (Some(Type::Array), Some(Type::Array)) => match (&older.items, &newer.items) {
                (Some(items), Some(new_items)) => {
                    let (up, down) = self.value(items, new_items, &path.each(), &new_path.each())?;
                    Ok((Convert::each(up), Convert::each(down)))
                }
                _ => Ok((Convert::Same, Convert::Same)),
            },
            (Some(Type::Array), Some(_)) | (Some(_), Some(Type::Array)) => Err(differ(older, newer)),
            _ => self.objects(older, newer, path, new_path),
        }
    }

    fn objects(
        &mut self,
        older: &Schema,
        newer: &Schema,
        path: &FieldPath,
        new_path: &FieldPath,
    ) -> Result<Both, String> {
        if let (Some(Additional::Schema(values)), Some(Additional::Schema(new_values))) =
            (&older.additional, &newer.additional)
        {
            let (up, down) = self.value(values, new_values, &path.each(), &new_path.each())?;
            return Ok((Convert::each(up), Convert::each(down)));
        }
        if is_opaque(older) && is_opaque(newer) {
            return Ok((Convert::Same, Convert::Same));
        }
        let is_map = |schema: &Schema| schema.additional_schema().is_some();
        if is_map(older) != is_map(newer) && !is_opaque(older) && !is_opaque(newer) {
            return Err("one is a map with any keys, the other an object with given fields".to_owned());
        }
        if is_map(older) || is_map(newer) {
            return Ok((Convert::Same, Convert::Same));
        }
        self.type_names(path, new_path)?;
        self.object(older, newer, path, new_path)
    }

    /// Types with different names correspond only if the plan says so.
    fn type_names(&mut self, path: &FieldPath, new_path: &FieldPath) -> Result<(), String> {
        let types = self.types;
        let name = |version: &str, path: &FieldPath| {
            let found = types.iter().find(|named| named.value.0 == version && named.value.1 == *path);
            found.map(|named| named.value.2.as_str())
        };
        let (Some(one), Some(other)) = (name(&self.older.name, path), name(&self.newer.name, new_path)) else {
            return Ok(());
        };
        let renamed = self.plan.type_renames.iter().position(|rename| rename.value.0 == one && rename.value.1 == other);
        if let Some(index) = renamed {
            self.used.insert(("typeRenames", index));
            return Ok(());
        }
        if one.eq_ignore_ascii_case(other) {
            return Ok(());
        }
        Err(format!("their types are {one} and {other}; if one is the other, list it under typeRenames"))
    }

    fn renamed_values(
        &mut self,
        index: usize,
        (older, newer): (&Schema, &Schema),
        (path, new_path): (&FieldPath, &FieldPath),
    ) -> Result<Both, String> {
        let plan = self.plan;
        let entry = &plan.enums[index];
        let (Some(from), Some(to)) = (Scalar::of(older), Scalar::of(newer)) else {
            return Err("only single values have other names".to_owned());
        };
        let value = |text: &str, scalar: Scalar| match scalar {
            Scalar::Integer | Scalar::Number => text.parse::<i64>().map(Value::from).unwrap_or_else(|_| text.into()),
            Scalar::Boolean => text.parse::<bool>().map(Value::from).unwrap_or_else(|_| text.into()),
            Scalar::String | Scalar::IntOrString => text.into(),
        };
        let (mut up, mut down) = (HashMap::new(), HashMap::new());
        let mut several = None;
        for (old, new) in &entry.value {
            for (text, schema, form) in [(old, older, self.older), (new, newer, self.newer)] {
                let scalar = if std::ptr::eq(schema, older) { from } else { to };
                let listed = schema.enumeration.as_ref();
                if listed.is_some_and(|listed| !listed.contains(&value(text, scalar))) {
                    return Err(format!("{text:?} is no value of it in {}", form.name));
                }
            }
            up.insert(old.clone(), value(new, to));
            if down.insert(new.clone(), value(old, from)).is_some() {
                several = Some(new.clone());
            }
        }
        if let Some(new) = several
            && !self.acknowledged(path)
        {
            let message =
                format!("{path}: {new:?} stands for several old values, so it becomes one of them on the way back");
            self.error(&entry.position, message, &[
                "say under acknowledge why that is right; objects that were converted keep their own value in the bag",
            ]);
        }
        self.operation(OperationKind::MapEnum, path, new_path, Loss::InBag);
        Ok((Convert::Enum(Arc::new(up)), Convert::Enum(Arc::new(down))))
    }

    fn reshaped(
        &mut self,
        index: usize,
        (older, newer): (&Schema, &Schema),
        (path, new_path): (&FieldPath, &FieldPath),
    ) -> Result<Both, String> {
        let plan = self.plan;
        let items = |schema: &Schema| {
            let is_list = schema.kind == Some(Type::Array);
            schema
                .items
                .as_deref()
                .filter(|_| is_list)
                .cloned()
                .ok_or_else(|| format!("expected a list, found {}", schema.type_name()))
        };
        match &plan.lists[index].value {
            Reshaping::WrapList => {
                let (up, down) = self.value(older, &items(newer)?, path, &new_path.each())?;
                self.operation(OperationKind::WrapList, path, new_path, Loss::InBag);
                Ok((Convert::Wrap(up.into()), Convert::Unwrap(down.into())))
            }
            Reshaping::UnwrapList => {
                let (up, down) = self.value(&items(older)?, newer, &path.each(), new_path)?;
                self.operation(OperationKind::UnwrapList, path, new_path, Loss::InBag);
                Ok((Convert::Unwrap(up.into()), Convert::Wrap(down.into())))
            }
            Reshaping::ListToMap(keyed) => {
                let (item, value) = (items(older)?, values(newer)?);
                let (item, below) = self.keyed(&item, keyed, &path.each())?;
                let (up, down) = self.value(&item, &value, &below, &new_path.each())?;
                self.operation(OperationKind::ListToMap, path, new_path, Loss::InBag);
                Ok((Convert::ToMap(keyed.clone(), up.into()), Convert::ToList(keyed.clone(), down.into())))
            }
            Reshaping::MapToList(keyed) => {
                let (value, item) = (values(older)?, items(newer)?);
                let (item, below) = self.keyed(&item, keyed, &new_path.each())?;
                let (up, down) = self.value(&value, &item, &path.each(), &below)?;
                self.operation(OperationKind::MapToList, path, new_path, Loss::InBag);
                Ok((Convert::ToList(keyed.clone(), up.into()), Convert::ToMap(keyed.clone(), down.into())))
            }
        }
    }

    /// What of an item corresponds to a value of the map.
    fn keyed(&self, item: &Schema, keyed: &Keyed, path: &FieldPath) -> Result<(Schema, FieldPath), String> {
        if item.properties.get(&keyed.key).and_then(Scalar::of) != Some(Scalar::String) {
            return Err(format!("its items have no string {:?} to be the key", keyed.key));
        }
        match &keyed.value {
            Some(field) => {
                let value = item.properties.get(field).cloned();
                value
                    .map(|value| (value, path.field(field)))
                    .ok_or_else(|| format!("its items have no field {field:?}"))
            }
            None => {
                let mut rest = item.clone();
                let fields = item.properties.iter().filter(|(name, _)| **name != keyed.key);
                rest.properties = fields.map(|(name, schema)| (name.clone(), schema.clone())).collect::<Properties>();
                // Its digest is that of the whole item.
                rest.digest = 0;
                Ok((rest, path.clone()))
            }
        }
    }
}

fn values(schema: &Schema) -> Result<Schema, String> {
    schema.additional_schema().cloned().ok_or_else(|| format!("expected a map, found {}", schema.type_name()))
}

fn differ(older: &Schema, newer: &Schema) -> String {
    format!("one is of type {}, the other of type {}", older.type_name(), newer.type_name())
}

/// Values of enumerations that differ only in the case of letters.
fn values_by_case(older: &Schema, newer: &Schema) -> Both {
    let (Some(old), Some(new)) = (&older.enumeration, &newer.enumeration) else {
        return (Convert::Same, Convert::Same);
    };
    let renamed = |from: &[Value], to: &[Value]| -> HashMap<String, Value> {
        let other = |text: &str| {
            let mut same =
                to.iter().filter(|value| value.as_str().is_some_and(|value| value.eq_ignore_ascii_case(text)));
            same.next().filter(|_| same.next().is_none()).cloned()
        };
        let missing = from.iter().filter(|value| !to.contains(value)).filter_map(Value::as_str);
        missing.filter_map(|text| Some((text.to_owned(), other(text)?))).collect()
    };
    let (up, down) = (renamed(old, new), renamed(new, old));
    if up.is_empty() && down.is_empty() {
        return (Convert::Same, Convert::Same);
    }
    (Convert::Enum(Arc::new(up)), Convert::Enum(Arc::new(down)))
}
