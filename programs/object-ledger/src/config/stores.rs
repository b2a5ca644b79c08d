//! Buckets by their protocols.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::{ObjectStore, RetryConfig};

use super::credentials::Credentials;
use super::{BucketOptions, Provider};
use crate::http_client::Connector;

/// A bucket that can be asked. Nothing is tried again below [`crate::storage`], which counts and bounds it.
pub(super) fn open(
    options: &BucketOptions,
    credentials: &Credentials,
) -> Result<Arc<dyn ObjectStore>, String> {
    let credential = options.credentials.as_deref().map(|it| credentials.get(it)).transpose()?;
    let once = RetryConfig {
        max_retries: 0,
        retry_timeout: Duration::from_secs(30),
        ..RetryConfig::default()
    };
    let is_plain = options.endpoint.as_ref().is_some_and(|it| it.starts_with("http://"));
    let words = |error: object_store::Error| error.to_string();
    match options.provider {
        Provider::Aws => {
            let mut builder = AmazonS3Builder::new()
                .with_http_connector(Connector)
                .with_retry(once)
                .with_allow_http(is_plain)
                .with_bucket_name(&options.bucket)
                .with_region(options.region.as_deref().unwrap_or("us-east-1"));
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_endpoint(endpoint);
            }
            builder = match credential {
                Some(it) => builder
                    .with_access_key_id(it.id.unwrap_or_default())
                    .with_secret_access_key(it.secret.unwrap_or_default()),
                None => builder.with_skip_signature(true),
            };
            builder.build().map(arc).map_err(words)
        }
        Provider::Azure => {
            let id = credential.as_ref().and_then(|it| it.id.clone());
            let mut builder = MicrosoftAzureBuilder::new()
                .with_http_connector(Connector)
                .with_retry(once)
                .with_allow_http(is_plain)
                .with_container_name(&options.bucket)
                .with_account(id.unwrap_or_else(|| "anonymous".to_owned()));
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_endpoint(endpoint.clone());
            }
            builder = match credential.and_then(|it| it.secret) {
                Some(key) => builder.with_access_key(key),
                None => builder.with_skip_signature(true),
            };
            builder.build().map(arc).map_err(words)
        }
        Provider::Gcp => {
            let mut builder = GoogleCloudStorageBuilder::new()
                .with_http_connector(Connector)
                .with_retry(once)
                .with_client_options(object_store::ClientOptions::new().with_allow_http(is_plain))
                .with_bucket_name(&options.bucket);
            if let Some(endpoint) = &options.endpoint {
                builder = builder.with_base_url(endpoint);
            }
            builder = match credential.and_then(|it| it.secret) {
                Some(account) => builder.with_service_account_key(account),
                None => builder.with_skip_signature(true),
            };
            builder.build().map(arc).map_err(words)
        }
        Provider::Local => {
            std::fs::create_dir_all(&options.bucket).map_err(|error| error.to_string())?;
            let store = LocalFileSystem::new_with_prefix(&options.bucket);
            store.map(|store| arc(store.with_fsync(true))).map_err(words)
        }
    }
}

fn arc(store: impl ObjectStore) -> Arc<dyn ObjectStore> {
    Arc::new(store)
}
