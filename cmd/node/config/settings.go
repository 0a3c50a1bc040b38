package config

import "strings"

// A Setting is a key of a Config in the form that operators may see.
type Setting struct {
	Name     string // name as in the file, with a dot between section and key
	Value    string // value in the syntax of the file; [redacted] for a secret, "" for a secret that is not set
	IsSecret bool   // true if the key is for secrets, or if its value contains a secret
	Origin   Origin
	From     string // source of the value: "hub.yaml line 3", the variable, or the flag; "the default" for a default
	Variable string // environment variable of the key
	Usage    string // purpose of the key
}

// An Origin is the layer that a value comes from.
type Origin string

// Origins of values. Each overrides the previous ones.
const (
	ByDefault     Origin = "default"
	ByFile        Origin = "file"
	ByEnvironment Origin = "environment"
	ByFlag        Origin = "flag"
)

var origins = map[layer]Origin{byDefault: ByDefault, byFile: ByFile, byEnvironment: ByEnvironment, byFlag: ByFlag}

// Settings returns all keys in the order of the table. It redacts secrets.
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

// IsLoaded reports whether c contains the values of all layers. It is false for
// the Config that [Load] returns if a layer cannot be read.
func (c *Config) IsLoaded() bool { return c.from != nil }

// Faults returns the individual faults in an error of Load or Validate.
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
