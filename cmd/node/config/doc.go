// Package config contains the settings that an operator can make for a node: one
// typed [Config], which [Load] reads from four layers. Each layer overrides the
// layers to its left:
//
//	defaults < file (YAML) < environment (MESSAGEHUB_…) < flags
//
// Every key has one name. A key of a section is written section.key in errors,
// section: {key: …} in the file, MESSAGEHUB_SECTION_KEY in the environment, and
// --section-key as a flag. keys.go has the table of keys; a row in it is all
// that a new key needs.
//
// Nothing is ignored. An unknown key is an error that names the most similar
// known key, so that a typing error does not silently leave a default in use. An
// error about a value names the source of the value. All errors are reported
// together.
//
// The producers, channels and consumers of the broker (broker_parties.go) have
// tokens, which are in files or in environment variables. Load does not read the
// token files, because commands that only call a hub may not have the right to
// do so. [TokenSource.Read] reads them when a node starts.
//
// Secrets have the type [Secret], which every way of printing shows as
// [redacted]. A secret in another setting is refused. [Redact] removes secrets
// from a text; every error passes through it.
package config
