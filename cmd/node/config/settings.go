package config

import "strings"

// A Setting is a key of a Config as operators may see it.
type Setting struct {
	Name     string // as in the file, with a dot between section and key
	Value    string // in the syntax of the file; [redacted] for a secret, "" for a secret that is not set
	IsSecret bool   // the values of the key are secrets, or the value contains a secret
	Origin   Origin
	From     string // source of the value: "hub.yaml line 3", the variable, or the flag; "the default" for a default
	Variable string // variable of the environment for the key
	Usage    string // purpose of the key
}

// An Origin is the layer of a value.
type Origin string

// The origins; each overrides the ones before it.
const (
	ByDefault     Origin = "default"
	ByFile        Origin = "file"
	ByEnvironment Origin = "environment"
	ByFlag        Origin = "flag"
)

var origins = map[layer]Origin{byDefault: ByDefault, byFile: ByFile, byEnvironment: ByEnvironment, byFlag: ByFlag}

// Settings returns all keys in the order of the table, secrets hidden.
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

// IsLoaded reports whether c has the values of its layers: [Load] returns none
// if one of them cannot be read.
func (c *Config) IsLoaded() bool { return c.from != nil }

// Faults returns the single faults in an error of Load or Validate.
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
