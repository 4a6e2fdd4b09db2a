//! A hostile or broken server: nothing it says is trusted, and nothing may run forever.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::pages::{MAX_PAGES, Paging, list_within};

fn query() -> ListQuery {
    ListQuery::new(config_map(), Some("shop"), "")
}

fn page(token: &str) -> Reply {
    Reply::json(200, &json!({"kind": "ConfigMapList", "metadata": {"continue": token}, "items": []}))
}

#[tokio::test(start_paused = true)]
async fn a_list_that_does_not_go_on_is_given_up() {
    let fake = Fake::function(|_| page("again"));
    let error = list_all(&fake.cluster, &query()).await.unwrap_err();
    assert_eq!((error.kind, fake.asked().len()), (ErrorKind::Protocol, 2));
    assert!(error.message.contains("the same continue token"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_without_a_last_page_is_given_up() {
    let number = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&number);
    let fake = Fake::function(move |_| {
        let token = counter.fetch_add(1, Ordering::Relaxed).to_string();
        Reply::json(200, &json!({"kind": "ConfigMapList", "metadata": {"continue": token}, "items": [object()]}))
    });
    let error = list_all(&fake.cluster, &query()).await.unwrap_err();
    assert_eq!((error.kind, number.load(Ordering::Relaxed)), (ErrorKind::Protocol, MAX_PAGES as usize));
    assert!(error.message.contains("does not end"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_empty_pages_is_given_up_soon() {
    let number = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&number);
    let fake = Fake::function(move |_| page(&counter.fetch_add(1, Ordering::Relaxed).to_string()));
    let error = list_all(&fake.cluster, &query()).await.unwrap_err();
    assert_eq!((error.kind, number.load(Ordering::Relaxed)), (ErrorKind::Protocol, 20));
    assert_eq!(error.message, "the list does not end: 20 pages in a row are empty");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_expires_again_and_again_has_no_more_pages_for_it() {
    let number = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&number);
    let fake = Fake::function(move |_| match counter.fetch_add(1, Ordering::Relaxed) {
        count if count % 6000 == 5999 => Reply::json(410, &json!({"kind": "Status", "code": 410, "reason": "Expired"})),
        count => {
            let metadata = json!({"continue": count.to_string()});
            Reply::json(200, &json!({"kind": "ConfigMapList", "metadata": metadata, "items": [object()]}))
        }
    });
    let error = list_all(&fake.cluster, &query()).await.unwrap_err();
    assert_eq!((error.kind, number.load(Ordering::Relaxed)), (ErrorKind::Protocol, MAX_PAGES as usize + 1));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_full_pages_is_given_up_after_so_many_bytes() {
    let number = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&number);
    let full = |count: usize| json!({"kind": "ConfigMapList", "metadata": {"continue": format!("{count:09}")}, "items": [object()]});
    let length = full(0).to_string().len() as u64;
    let fake = Fake::function(move |_| Reply::json(200, &full(counter.fetch_add(1, Ordering::Relaxed))));
    let mut paging = Paging::kept();
    paging.most_bytes = 3 * length;
    let error = list_within(&fake.cluster, &query(), paging).await.unwrap_err();
    assert_eq!((error.kind, number.load(Ordering::Relaxed)), (ErrorKind::Protocol, 4));
    assert!(error.message.starts_with("the list does not end: it has more than "), "{error}");
}

#[test]
fn what_the_largest_clusters_have_of_a_kind_is_taken_in() {
    let pages_of = |objects: u64, bytes: u64| (objects.div_ceil(500), 500 * bytes);
    let take = |mut paging: Paging, (pages, bytes): (u64, u64)| {
        let page = Page { items: vec![Arc::new(Value::Null)], bytes, ..Page::default() };
        (1..pages).try_for_each(|_| paging.next(&page)).map_err(|error| error.message)
    };
    assert_eq!(take(Paging::kept(), pages_of(100_000, 20 << 10)), Ok(()));
    assert_eq!(take(Paging::kept(), pages_of(1_000, 1_500_000)), Ok(()));
    assert_eq!(take(Paging::passing(), pages_of(100_000, 80 << 10)), Ok(()));
    let too_many = take(Paging::kept(), pages_of(2_000, 1_500_000));
    assert_eq!(too_many, Err("the list does not end: it has more than 2048 MiB".to_owned()));
    let too_many = take(Paging::passing(), pages_of(8_000, 1_500_000));
    assert_eq!(too_many, Err("the list does not end: it has more than 8192 MiB".to_owned()));
}

/// One byte more than a page may have, in chunks of a MiB.
fn too_long() -> Reply {
    let blank = " ".repeat(1 << 20);
    Reply::Answer(200, Vec::new(), vec![blank; 129])
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_too_long_is_asked_for_in_smaller_ones() {
    let fake = Fake::function(|asked| if asked.query.contains("limit=500") { too_long() } else { page("") });
    list_all(&fake.cluster, &query()).await.unwrap();
    let queries: Vec<String> = fake.asked().iter().map(|asked| asked.query.clone()).collect();
    assert_eq!(queries.len(), 2, "{queries:?}");
    assert!(queries[1].ends_with("limit=50"), "{queries:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_long_is_not_read_to_its_end() {
    let fake = Fake::function(|_| too_long());
    let error = fake.cluster.get(&address()).await.unwrap_err();
    assert_eq!((error.kind, fake.asked().len()), (ErrorKind::TooLarge, 1));
    assert_eq!(error.message, "the answer is longer than 64 MiB");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nests_without_end_is_no_answer() {
    for deep in [format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000)), "{\"a\":".repeat(100_000)] {
        let fake = Fake::script([Reply::Answer(200, Vec::new(), vec![deep])]);
        let error = fake.cluster.get(&address()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Protocol);
    }
}

#[tokio::test(start_paused = true)]
async fn of_thousands_of_warnings_some_are_told_and_cut() {
    let number = Arc::new(AtomicUsize::new(0));
    let mut fake = Fake::function(move |_| {
        let mut reply = Reply::json(200, &object());
        let first = number.fetch_add(100, Ordering::Relaxed);
        for index in first..first + 100 {
            reply = reply.with_header("warning", &format!("299 - \"{index} {}\"", "x".repeat(5000)));
        }
        reply
    });
    for _ in 0..20 {
        fake.cluster.get(&address()).await.unwrap();
    }
    let told = fake.notices();
    assert_eq!(told.len(), 500);
    let longest = told.iter().map(|notice| match notice {
        Notice::Warning { message, .. } => message.len(),
        Notice::Retry { .. } => usize::MAX,
    });
    assert_eq!(longest.max(), Some(1000));
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed() {
    for status in [301, 302, 303, 307, 308] {
        let reply = Reply::json(status, &json!({})).with_header("location", "http://evil.example/");
        let fake = Fake::function(move |_| reply.clone());
        let error = fake.cluster.get(&address()).await.unwrap_err();
        assert_eq!((error.kind, error.status, fake.asked().len()), (ErrorKind::Protocol, status, 1));
    }
}

#[test]
fn what_may_hold_secrets_shows_none_of_it_for_debugging() {
    let value =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "stringData": {"a": "hunter2"}});
    let call = Call::apply(&Address::new(secret(), "shop", "a"), &value, ApplyOptions::default()).unwrap();
    let written = Written { object: Arc::new(value.clone()), created: true, warnings: Vec::new() };
    let page = Page { items: vec![Arc::new(value.clone())], ..Page::default() };
    let options = ConnectOptions { kubeconfig_yaml: Some("token: hunter2".to_owned()), ..ConnectOptions::default() };
    let shown = format!(
        "{call:?} {:?} {written:?} {page:?} {:?} {:?} {:?} {options:?}",
        call.secrets(),
        Patch::Json(json!([{"op": "add", "path": "/data/a", "value": "hunter2"}])),
        WatchEvent::Applied(Arc::new(value.clone())),
        Deleted { object: Arc::new(value), warnings: Vec::new() },
    );
    assert!(!shown.contains("hunter2") && !shown.contains("104, 117, 110"), "{shown}");
}
