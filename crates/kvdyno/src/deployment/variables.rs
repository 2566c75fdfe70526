//! Variables of a deployment file: its own values, and those of the command line. Commands get them as their environment, so
//! that no value is ever read as shell; the file's own texts name them as `$NAME`.

use std::collections::BTreeMap;

use kvdyno_core::ground::hints::hint;
use kvdyno_core::redact;

/// Names that kvdyno gives to commands, or that the system's programs depend on.
const RESERVED: [&str; 29] = [
    "TAG",
    "STEP",
    "STATE",
    "EXPIRES",
    "EXPIRES_EPOCH",
    "EXPIRES_SECONDS",
    "NODES",
    "NODE_HOSTS",
    "LOAD_HOSTS",
    "NODE_OUTERS",
    "LOAD_OUTERS",
    "MACHINE",
    "MACHINE_KIND",
    "NUMBER",
    "OUTER",
    "INNER",
    "NODE",
    "ADDRESS",
    "HOST",
    "PORT",
    "FOLDER",
    "LOAD",
    "PATH",
    "HOME",
    "SHELL",
    "USER",
    "IFS",
    "PWD",
    "LD_PRELOAD",
];

/// Mistake in variables, or in a text that names them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    /// A word of `--var` that is not NAME=VALUE.
    #[error("--var {0}: write NAME=VALUE")]
    Form(String),
    /// A variable that the file does not have.
    #[error("it has no variable `{0}`; {1}")]
    Unknown(String, String),
    /// A name that no variable may have.
    #[error("variable `{0}`: write names in capitals, such as REGION")]
    Name(String),
    /// A name that kvdyno or the system uses.
    #[error("variable `{0}`: kvdyno or the system uses this name; choose another one")]
    Reserved(String),
    /// A variable for a secret.
    #[error(
        "variable `{0}` names a secret, and variables are written down; use the own configuration of the tool that needs it"
    )]
    Secret(String),
}

/// Variables with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables(pub BTreeMap<String, String>);

impl Variables {
    /// Puts the values of the command line, each NAME=VALUE, in the place of the file's.
    ///
    /// # Errors
    /// [`VariableError`] if a name is not known or not allowed.
    pub fn of(
        file: BTreeMap<String, String>,
        given: &[String],
    ) -> Result<Variables, VariableError> {
        for name in file.keys() {
            check(name)?;
        }
        let mut values = file;
        for word in given {
            let (name, value) =
                word.split_once('=').ok_or_else(|| VariableError::Form(word.clone()))?;
            let names: Vec<&str> = values.keys().map(String::as_str).collect();
            if !values.contains_key(name) {
                return Err(VariableError::Unknown(name.to_owned(), hint(name, &names)));
            }
            values.insert(name.to_owned(), value.to_owned());
        }
        Ok(Variables(values))
    }

    /// Returns the text with the value of each `$NAME` and `${NAME}` in its place. `more` are names that only this text
    /// may use.
    ///
    /// # Errors
    /// [`VariableError::Unknown`] if it names something else.
    pub fn expand(&self, text: &str, more: &[(&str, &str)]) -> Result<String, VariableError> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            expanded.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let braced = rest.starts_with('{');
            let inside = rest.strip_prefix('{').unwrap_or(rest);
            let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = inside.find(|c| !of_name(c)).unwrap_or(inside.len());
            let name = &inside[..end];
            expanded.push_str(self.value(name, more)?);
            rest = &inside[end..];
            if braced {
                rest = rest.strip_prefix('}').unwrap_or(rest);
            }
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value<'a>(&'a self, name: &str, more: &[(&str, &'a str)]) -> Result<&'a str, VariableError> {
        if let Some((_, value)) = more.iter().find(|(known, _)| *known == name) {
            return Ok(value);
        }
        self.0.get(name).map(String::as_str).ok_or_else(|| {
            let own = self.0.keys().map(String::as_str);
            let names: Vec<&str> = own.chain(more.iter().map(|(name, _)| *name)).collect();
            VariableError::Unknown(name.to_owned(), hint(name, &names))
        })
    }
}

fn check(name: &str) -> Result<(), VariableError> {
    let capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_uppercase()) || !name.chars().all(capital) {
        return Err(VariableError::Name(name.to_owned()));
    }
    if RESERVED.contains(&name) || name.starts_with("KVDYNO_") {
        return Err(VariableError::Reserved(name.to_owned()));
    }
    match redact::names_secret(name) {
        true => Err(VariableError::Secret(name.to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_file(values: &[(&str, &str)]) -> BTreeMap<String, String> {
        values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn with(values: &[(&str, &str)], given: &[&str]) -> Result<Variables, VariableError> {
        let given: Vec<String> = given.iter().map(|word| (*word).to_owned()).collect();
        Variables::of(of_file(values), &given)
    }

    #[test]
    fn the_command_line_changes_variables_that_the_file_has() {
        let variables = with(&[("REGION", "a"), ("COUNT", "2")], &["REGION=b=c"]).unwrap();
        assert_eq!(variables.0["REGION"], "b=c");
        assert_eq!(variables.0["COUNT"], "2");
        let unknown = with(&[("REGION", "a")], &["REGOIN=b"]).unwrap_err().to_string();
        assert!(unknown.contains("did you mean `REGION`?"), "{unknown}");
        assert!(matches!(with(&[("REGION", "a")], &["REGION"]), Err(VariableError::Form(_))));
    }

    #[test]
    fn names_of_secrets_of_kvdyno_and_of_the_system_are_refused() {
        let of = |name: &str| with(&[(name, "x")], &[]).unwrap_err();
        assert!(matches!(of("AWS_SECRET"), VariableError::Secret(_)));
        assert!(matches!(of("SSH_KEY"), VariableError::Secret(_)));
        assert!(matches!(of("TAG"), VariableError::Reserved(_)));
        assert!(matches!(of("KVDYNO_X"), VariableError::Reserved(_)));
        assert!(matches!(of("region"), VariableError::Name(_)));
        assert!(matches!(of("1A"), VariableError::Name(_)));
    }

    #[test]
    fn texts_have_values_in_the_place_of_names() {
        let variables = with(&[("A", "1"), ("AB", "2")], &[]).unwrap();
        let expand = |text: &str| variables.expand(text, &[("NODES", "h:1,i:2")]);
        assert!(matches!(expand("a$"), Err(VariableError::Unknown(..))));
        assert_eq!(expand("redis://$NODES/${A}x$AB").unwrap(), "redis://h:1,i:2/1x2");
        assert_eq!(expand("plain").unwrap(), "plain");
        assert!(expand("$NODE").unwrap_err().to_string().contains("did you mean `NODES`?"));
    }
}
