package config

import "strings"

// A Setting describes a key and its value in a form that operators may see.
type Setting struct {
	Name     string // full name, with a dot between section and key
	Value    string // value in the syntax of the file; [redacted] for a secret, or "" if the secret is not set
	IsSecret bool   // the key is for secrets, or the value contains a secret
	Origin   Origin
	From     string // source of the value, such as "hub.yaml line 3", the name of a variable or a flag, or "the default"
	Variable string // environment variable that sets the key
	Usage    string // describes the key
}

// An Origin is the layer from which a value comes.
type Origin string

// Origins of values. Each layer overrides the previous ones.
const (
	ByDefault     Origin = "default"
	ByFile        Origin = "file"
	ByEnvironment Origin = "environment"
	ByFlag        Origin = "flag"
)

var origins = map[layer]Origin{byDefault: ByDefault, byFile: ByFile, byEnvironment: ByEnvironment, byFlag: ByFlag}

// Settings describes all keys, in the order of the handbook. Secrets are
// redacted.
func (c *Config) Settings() []Setting {
	settings := make([]Setting, len(keys))
	for i, k := range keys {
		value := c.shownValue(k)
		settings[i] = Setting{
			Name: k.name, Value: value, IsSecret: c.isSecretKey(k) || value == redacted,
			Origin: origins[c.from[k.name].layer], From: c.source(k.name), Variable: envName(k.name), Usage: strings.ReplaceAll(k.usage, "`", ""),
		}
	}
	return settings
}

// IsLoaded reports whether c contains the values of all layers. If a layer
// cannot be read, [Load] returns a Config for which it is false.
func (c *Config) IsLoaded() bool { return c.from != nil }

// Faults returns the individual faults that an error of Load or Validate
// contains.
func Faults(err error) []error {
	if invalid, isInvalid := err.(*InvalidError); isInvalid { //nolint:errorlint // Load returns it as it is
		err = invalid.Err
	}
	joined, isJoined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !isJoined:
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Faults(e)...)
	}
	return all
}
