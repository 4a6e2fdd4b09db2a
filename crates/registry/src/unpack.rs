//! Unpacks tar archives in memory: number, size and names of entries are bounded, and no entry or link leads out.
//! Nothing is written, so an archive can neither replace a file nor create a device.

use std::collections::BTreeMap;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

/// Limits of all layers of an artifact together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnpackLimits {
    /// Bytes of all files.
    pub(crate) bytes: u64,
    /// Bytes of a file.
    pub(crate) file_bytes: u64,
    /// Number of entries.
    pub(crate) entries: usize,
    /// Depth of folders.
    pub(crate) depth: usize,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self { bytes: 256 << 20, file_bytes: 64 << 20, entries: 100_000, depth: 64 }
    }
}

/// Bytes of an entry besides its content.
const HEADERS: u64 = 2048;

/// Maximum length of a path.
const MAX_PATH: usize = 1024;

/// Maximum number of links that lead to a file one after another.
const MAX_LINKS: usize = 8;

/// Prefixes of files in the layer of an image that delete files of lower layers.
const WHITEOUT: &str = ".wh.";
const OPAQUE: &str = ".wh..wh..opq";

/// Text of the error behind which decompression stops.
const TOO_LONG: &str = "the archive is too long";

/// The content of an archive's layers.
#[derive(Debug, Default)]
pub(crate) struct FileTree {
    /// Files by path, with `/` between folders.
    files: BTreeMap<String, Vec<u8>>,
    /// Symbolic links to paths of the archive.
    links: BTreeMap<String, String>,
    bytes: u64,
    entries: usize,
    limits: UnpackLimits,
}

/// Compression of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
}

impl FileTree {
    pub(crate) fn new(limits: UnpackLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds the entries of an archive; those of an image's layer replace and delete those of the layers before.
    ///
    /// # Errors
    /// The message, which names the entry.
    pub(crate) fn add_archive(&mut self, bytes: &[u8], compression: Compression) -> Result<(), String> {
        let limit = self.limits.bytes + HEADERS * (self.limits.entries as u64 + 1);
        match compression {
            Compression::None => self.add(Archive::new(BoundedReader { source: bytes, left: limit })),
            Compression::Gzip => {
                self.add(Archive::new(BoundedReader { source: MultiGzDecoder::new(bytes), left: limit }))
            }
        }
    }

    /// Adds a single file.
    ///
    /// # Errors
    /// The message, which names the file.
    pub(crate) fn add_file(&mut self, name: &str, content: Vec<u8>) -> Result<(), String> {
        let path = self.checked_path(name).map_err(|error| named(name, &error))?;
        self.insert(path, content).map_err(|error| named(name, &error))
    }

    /// Returns the files; a symbolic link has the content of the file that it leads to.
    ///
    /// # Errors
    /// The message, which names a link that leads to no file.
    pub(crate) fn into_files(mut self) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let links = std::mem::take(&mut self.links);
        for (path, target) in &links {
            let mut target = target.clone();
            let mut steps = 0;
            while !self.files.contains_key(&target) {
                let Some(next) = links.get(&target) else { break };
                target.clone_from(next);
                steps += 1;
                if steps > MAX_LINKS {
                    return Err(named(path, "it is a link that leads through too many links"));
                }
            }
            let Some(content) = self.files.get(&target).cloned() else {
                return Err(named(path, "it is a link that does not lead to a file of the artifact"));
            };
            self.insert(path.clone(), content).map_err(|error| named(path, &error))?;
        }
        Ok(self.files)
    }

    fn add<R: Read>(&mut self, mut archive: Archive<R>) -> Result<(), String> {
        let entries = archive.entries().map_err(|error| self.broken(&error))?;
        for entry in entries {
            let mut entry = entry.map_err(|error| self.broken(&error))?;
            self.entries += 1;
            if self.entries > self.limits.entries {
                return Err(format!("it has more than {} entries", self.limits.entries));
            }
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            self.entry(&mut entry, &name).map_err(|error| named(&name, &error))?;
        }
        Ok(())
    }

    fn entry<R: Read>(&mut self, entry: &mut Entry<'_, R>, name: &str) -> Result<(), String> {
        let kind = entry.header().entry_type();
        match kind {
            EntryType::XGlobalHeader => return Ok(()),
            EntryType::Directory => return self.checked_folder(name),
            EntryType::Regular | EntryType::Continuous | EntryType::Symlink | EntryType::Link => {}
            EntryType::GNUSparse => return Err("it is a sparse file".to_owned()),
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                return Err("it is a device or a pipe, not a file".to_owned());
            }
            _ => return Err("it is not a file, folder or link".to_owned()),
        }
        let bytes = entry.path_bytes().into_owned();
        let path = self.checked_path(&String::from_utf8(bytes).map_err(|_| "its name is not UTF-8".to_owned())?)?;
        if is_sparse(entry) {
            return Err("it is a sparse file".to_owned());
        }
        if let Some(deleted) = whiteout(&path) {
            self.delete(&deleted);
            return Ok(());
        }
        if kind == EntryType::Symlink || kind == EntryType::Link {
            let target = entry.link_name_bytes().unwrap_or_default().into_owned();
            let target = String::from_utf8(target).map_err(|_| "its target is not UTF-8".to_owned())?;
            let folder = if kind == EntryType::Symlink { parent(&path) } else { "" };
            let target = inside(folder, &target).ok_or("it is a link that leads out of the artifact")?;
            self.delete(&path);
            if kind == EntryType::Symlink {
                self.links.insert(path, target);
                return Ok(());
            }
            let content = self.files.get(&target).cloned();
            return self.insert(path, content.ok_or("it is a link that does not lead to a file of the artifact")?);
        }
        let limit = self.limits.file_bytes;
        let too_large = || format!("larger than {}, the limit of one file", size(limit));
        if entry.size() > limit {
            return Err(too_large());
        }
        let mut content = Vec::new();
        entry.take(limit + 1).read_to_end(&mut content).map_err(|error| self.broken(&error))?;
        if content.len() as u64 > limit {
            return Err(too_large());
        }
        self.delete(&path);
        self.insert(path, content)
    }

    fn broken(&self, error: &io::Error) -> String {
        match error.to_string().contains(TOO_LONG) {
            true => format!("it unpacks to more than {}", size(self.limits.bytes)),
            false => "the archive is not complete or not valid".to_owned(),
        }
    }

    fn insert(&mut self, path: String, content: Vec<u8>) -> Result<(), String> {
        let mut above = path.as_str();
        while let Some((folder, _)) = above.rsplit_once('/') {
            if self.files.contains_key(folder) || self.links.contains_key(folder) {
                return Err(format!("{folder} is both a file and a folder"));
            }
            above = folder;
        }
        self.bytes += content.len() as u64;
        if self.bytes > self.limits.bytes {
            return Err(format!("it unpacks to more than {}", size(self.limits.bytes)));
        }
        self.files.insert(path, content);
        Ok(())
    }

    /// Deletes a file, or a folder with everything in it.
    fn delete(&mut self, path: &str) {
        delete_from(&mut self.files, path);
        delete_from(&mut self.links, path);
    }

    fn checked_folder(&self, name: &str) -> Result<(), String> {
        inside("", name).map(drop).ok_or_else(|| "its path leads out of the artifact".to_owned())
    }

    fn checked_path(&self, path: &str) -> Result<String, String> {
        let path = inside("", path).filter(|path| !path.contains('\\'));
        let path = path.ok_or("its path leads out of the artifact")?;
        if path.is_empty() || path.chars().any(char::is_control) {
            return Err("its name is not the name of a file".to_owned());
        }
        if path.len() > MAX_PATH || path.split('/').count() > self.limits.depth {
            return Err(format!("its path is longer than {MAX_PATH} bytes or {} levels", self.limits.depth));
        }
        Ok(path)
    }
}

/// Deletes a path and those below it. Takes time by what is deleted, since it runs once for each entry.
fn delete_from<T>(entries: &mut BTreeMap<String, T>, path: &str) {
    if path.is_empty() {
        entries.clear();
        return;
    }
    entries.remove(path);
    let folder = format!("{path}/");
    let below = entries.range(folder.clone()..).map(|(known, _)| known);
    let below: Vec<String> = below.take_while(|known| known.starts_with(&folder)).cloned().collect();
    for known in below {
        entries.remove(&known);
    }
}

/// A reader that fails behind a limit.
struct BoundedReader<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| io::Error::other(TOO_LONG))?;
        Ok(read)
    }
}

/// Resolves a path by its text; `None` if it is absolute or leads out.
fn inside(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The path that an entry of an image's layer deletes.
fn whiteout(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if name == OPAQUE {
        return Some(folder.to_owned());
    }
    let name = name.strip_prefix(WHITEOUT)?;
    Some(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") })
}

/// Returns whether extended headers describe a sparse file.
fn is_sparse<R: Read>(entry: &mut Entry<'_, R>) -> bool {
    let Ok(Some(extensions)) = entry.pax_extensions() else { return false };
    extensions.flatten().any(|extension| extension.key_bytes().starts_with(b"GNU.sparse"))
}

fn named(name: &str, message: &str) -> String {
    let shown: String = name.chars().take(200).flat_map(char::escape_debug).collect();
    format!("entry {shown}: {message}")
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;
    use tar::{Builder, Header};

    use super::*;

    const SMALL: UnpackLimits = UnpackLimits { bytes: 2000, file_bytes: 1000, entries: 10, depth: 4 };

    /// An archive whose names and links are written as they are.
    fn archive(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (name, kind, content) in entries {
            let mut header = Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o644);
            let is_link = kind.is_symlink() || kind.is_hard_link();
            if is_link {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            }
            let content = if is_link { "" } else { content };
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpack(layers: &[Vec<u8>]) -> Result<BTreeMap<String, Vec<u8>>, String> {
        let mut unpacked = FileTree::new(SMALL);
        layers.iter().try_for_each(|layer| unpacked.add_archive(layer, Compression::None))?;
        unpacked.into_files()
    }

    const FILE: EntryType = EntryType::Regular;
    const SYMLINK: EntryType = EntryType::Symlink;

    #[test]
    fn files_links_and_later_layers_are_unpacked() {
        let first = archive(&[
            ("./a.yaml", FILE, "1"),
            ("dir/", EntryType::Directory, ""),
            ("dir/b.yaml", FILE, "2"),
            ("dir/c.yaml", SYMLINK, "../a.yaml"),
            ("d.yaml", EntryType::Link, "dir/b.yaml"),
            ("old/x.yaml", FILE, "3"),
        ]);
        let second = archive(&[("dir/.wh.b.yaml", FILE, ""), ("a.yaml", FILE, "4"), ("old/.wh..wh..opq", FILE, "")]);
        let files = unpack(&[first, second]).unwrap();
        let files: Vec<(&str, &[u8])> = files.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())).collect();
        assert_eq!(files, [("a.yaml", &b"4"[..]), ("d.yaml", b"2"), ("dir/c.yaml", b"4")]);
    }

    #[test]
    fn hostile_entries_are_refused_by_name() {
        let long = "x".repeat(1001);
        let many: Vec<(&str, EntryType, &str)> = (0..11).map(|_| ("a", FILE, "")).collect();
        let half = "x".repeat(900);
        for (entries, message) in [
            (vec![("../a.yaml", FILE, "x")], "entry ../a.yaml: its path leads out of the artifact"),
            (vec![("a/../../b", FILE, "x")], "entry a/../../b: its path leads out of the artifact"),
            (vec![("/etc/passwd", FILE, "x")], "entry /etc/passwd: its path leads out of the artifact"),
            (vec![("..\\a", FILE, "x")], "entry ..\\\\a: its path leads out of the artifact"),
            (vec![("../d/", EntryType::Directory, "")], "entry ../d/: its path leads out of the artifact"),
            (vec![("a", SYMLINK, "/etc/passwd")], "entry a: it is a link that leads out of the artifact"),
            (vec![("a/b", SYMLINK, "../../x")], "entry a/b: it is a link that leads out of the artifact"),
            (vec![("a", EntryType::Link, "../x")], "entry a: it is a link that leads out of the artifact"),
            (vec![("a", SYMLINK, "b")], "entry a: it is a link that does not lead to a file of the artifact"),
            (vec![("a", SYMLINK, "b"), ("b", SYMLINK, "a")], "leads through too many links"),
            (vec![("a", SYMLINK, "b"), ("a/x", FILE, "")], "entry a/x: a is both a file and a folder"),
            (vec![("a", EntryType::Char, "")], "entry a: it is a device or a pipe, not a file"),
            (vec![("a", EntryType::Fifo, "")], "entry a: it is a device or a pipe, not a file"),
            (vec![("a", EntryType::GNUSparse, "")], "the archive is not complete or not valid"),
            (vec![("a\nb", FILE, "")], "entry a\\nb: its name is not the name of a file"),
            (vec![("a/b/c/d/e", FILE, "")], "entry a/b/c/d/e: its path is longer than 1024 bytes or 4 levels"),
            (vec![("a", FILE, &long)], "entry a: larger than 1000 bytes, the limit of one file"),
            (vec![("a", FILE, &half), ("b", FILE, &half), ("c", FILE, &half)], "entry c: it unpacks to more than"),
            (many, "it has more than 10 entries"),
        ] {
            let error = unpack(&[archive(&entries)]).unwrap_err();
            assert!(error.contains(message), "{error}: {message}");
        }
    }

    #[test]
    fn compressed_bombs_stop_at_the_limit() {
        let mut header = Header::new_gnu();
        header.set_path("a").unwrap();
        header.set_size(100 << 20);
        header.set_cksum();
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(header.as_bytes()).unwrap();
        packed.write_all(&vec![0; 1 << 20]).unwrap();
        let bomb = packed.finish().unwrap();
        let error = FileTree::new(SMALL).add_archive(&bomb, Compression::Gzip).unwrap_err();
        assert!(error.contains("larger than 1000 bytes"), "{error}");
        // A skipped content counts, too: extended headers of any length.
        let mut header = Header::new_gnu();
        header.set_path("pax").unwrap();
        header.set_entry_type(EntryType::XHeader);
        header.set_size(100 << 20);
        header.set_cksum();
        let mut packed = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(header.as_bytes()).unwrap();
        packed.write_all(&vec![b'x'; 1 << 20]).unwrap();
        let error = FileTree::new(SMALL).add_archive(&packed.finish().unwrap(), Compression::Gzip).unwrap_err();
        assert!(error.contains("it unpacks to more than 2000 bytes"), "{error}");
        assert!(FileTree::new(SMALL).add_archive(b"not gzip", Compression::Gzip).is_err());
        assert!(FileTree::new(SMALL).add_archive(&archive(&[("a", FILE, "x")])[..600], Compression::None).is_err());
    }
}
