// Package config contains the settings that an operator can make for a node:
// one typed [Config], which [Load] reads from four layers. Each layer overrides
// the layers to its left:
//
//	defaults < file (YAML) < environment (MESSAGEHUB_…) < flags
//
// Every key has one name. A key of a section is written section.key in errors,
// section: {key: …} in the file, MESSAGEHUB_SECTION_KEY in the environment, and
// --section-key as a flag. keys.go contains the table of keys; to add a key,
// add a row.
//
// Nothing is ignored. An unknown key is an error that suggests the most similar
// known key, so that a misspelt key never silently selects a default. An error
// about a value names the source of the value. All errors are reported
// together.
//
// The producers, channels and consumers of the broker (broker_parties.go) have
// tokens, which are stored in files or in environment variables. Load does not
// read the token files, because commands that only call a hub may not have
// permission to read them. [TokenSource.Read] reads them when a node starts.
//
// Secrets have the type [Secret], which is always printed as [redacted]. A
// secret in the value of another setting is an error. [Redact] removes secrets
// from a text, including the text of every error.
package config
