//! Descriptions of services and messages: from `.proto` files, or put together of what a server's reflection gives. JSON to
//! bytes and back by them. No connection is opened here.

use std::path::Path;

use model::options::did_you_mean;
use prost::Message as _;
use prost_reflect::{
    DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, SerializeOptions,
};

/// Reads `.proto` files and what they import.
///
/// # Errors
/// One sentence with file and line.
pub(crate) fn of_files(
    files: &[&str],
    imports: &[&str],
    folder: &Path,
) -> Result<DescriptorPool, String> {
    let include = |path: &&str| folder.join(path);
    let mut includes: Vec<_> = imports.iter().map(include).collect();
    if includes.is_empty() {
        includes.push(folder.to_path_buf());
        // A file in another folder is found by its own name there, as its neighbours import each other.
        includes.extend(
            files.iter().filter_map(|file| folder.join(file).parent().map(Path::to_path_buf)),
        );
    }
    let paths: Vec<_> = files.iter().map(include).collect();
    let compiler = protox::Compiler::new(includes).and_then(|mut compiler| {
        compiler.include_imports(true).include_source_info(false).open_files(paths)?;
        Ok(compiler.descriptor_pool())
    });
    compiler.map_err(|error| {
        // Only its debug form has the line.
        let told = format!("{error:?}");
        let place = told.lines().next().unwrap_or_default().to_owned();
        if place.contains(&error.to_string()) { place } else { error.to_string() }
    })
}

/// The two parts of `pkg.Service/Method`, also written `/pkg.Service/Method` or `pkg.Service.Method`.
pub(crate) fn split(method: &str) -> Result<(&str, &str), String> {
    let trimmed = method.trim_start_matches('/');
    let parts = trimmed.split_once('/').or_else(|| trimmed.rsplit_once('.'));
    match parts {
        Some((service, name)) if !service.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok((service, name))
        }
        _ => Err(format!("expected a method such as pkg.Service/Method, got `{method}`")),
    }
}

/// Finds a method that this client can call.
///
/// # Errors
/// When there is none, with the nearest.
pub(crate) fn method(
    pool: &DescriptorPool,
    service: &str,
    name: &str,
) -> Result<MethodDescriptor, String> {
    let Some(found) = pool.get_service_by_name(service) else {
        let names: Vec<String> = pool.services().map(|it| it.full_name().to_owned()).collect();
        return Err(format!(
            "there is no service `{service}`; {}",
            near(service, &names, "the description has no service")
        ));
    };
    let Some(method) = found.methods().find(|it| it.name() == name) else {
        let names: Vec<String> = found.methods().map(|it| it.name().to_owned()).collect();
        return Err(format!(
            "the service {service} has no method `{name}`; {}",
            near(name, &names, "it has none")
        ));
    };
    if method.is_client_streaming() {
        return Err(format!(
            "{service}/{name} takes a stream of requests; unary calls and server streams can be loaded"
        ));
    }
    Ok(method)
}

fn near(word: &str, names: &[String], none: &str) -> String {
    match did_you_mean(word, names.iter().map(String::as_str)) {
        Some(help) => help,
        None if names.is_empty() => none.to_owned(),
        None => format!("there are {}", names.join(", ")),
    }
}

/// A message's bytes.
///
/// # Errors
/// Why the JSON is not such a message.
pub(crate) fn encode(of: &MessageDescriptor, json: &[u8]) -> Result<Vec<u8>, String> {
    let json = if json.trim_ascii().is_empty() { b"{}" } else { json };
    let mut reader = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize(of.clone(), &mut reader)
        .and_then(|message| reader.end().map(|()| message))
        .map_err(|error| {
            format!("the JSON does not fit the message {}: {error}", of.full_name())
        })?;
    Ok(message.encode_to_vec())
}

/// A message as JSON, with fields that have their default.
///
/// # Errors
/// When the bytes are not such a message.
pub(crate) fn decode(of: &MessageDescriptor, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("not a message {}: {error}", of.full_name());
    let message = DynamicMessage::decode(of.clone(), bytes).map_err(|error| wrong(&error))?;
    let options = SerializeOptions::new().skip_default_fields(false);
    let mut json = serde_json::Serializer::new(Vec::new());
    message.serialize_with_options(&mut json, &options).map_err(|error| wrong(&error))?;
    Ok(json.into_inner())
}
