//! Two runs that create the same record.

use pushback_cluster::ListQuery;
use pushback_cluster::directory::DirectoryCluster;

use super::*;

#[tokio::test]
async fn record_that_another_run_creates_in_the_folder_meanwhile_is_a_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = (
        DirectoryCluster::open(folder.path()).expect("a folder"),
        DirectoryCluster::open(folder.path()).expect("a folder"),
    );
    // Both have read the folder while it has no record.
    for cluster in [&first, &second] {
        cluster.list(&ListQuery::new(config_map_kind(), None, "")).await.expect("a list");
    }
    let app = AppName { namespace: "default".to_owned(), name: "web".to_owned() };
    let write = RecordWrite {
        spec: Map::new(),
        own: OwnPart::new(Phase::default(), "run"),
        lock: None,
        inline_inventory: None,
        labels: Vec::new(),
    };
    let address = Address::new(config_map_kind(), "default", "web");
    write.create(&first, &app, &address).await.expect("a record");
    let error = write.create(&second, &app, &address).await.expect_err("the file is there");
    assert!(matches!(error, AppError::Changed { .. }), "{error}");
}
