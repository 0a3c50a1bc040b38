// Package config is what an operator can say about a node: one typed [Config],
// read by [Load] from four layers, each over the ones before it:
//
//	defaults < file (YAML) < environment (MESSAGEHUB_…) < flags
//
// Every key has one name. A key of a section is section.key in errors,
// section: {key: …} in the file, MESSAGEHUB_SECTION_KEY in the environment and
// --section-key as a flag. The table of keys is in keys.go; a key exists once
// it has a row there.
//
// Nothing is ignored. An unknown key is an error that names the nearest known one, so that a slip
// of the finger does not become a default. An error about a value says where the value came from.
// All errors are reported together.
//
// The producers, channels and consumers of the broker (broker_parties.go) have tokens, which are in
// files or in variables of the environment. Load does not fail without them: commands that only ask
// a hub may not be able to read them. So they are read by [TokenSource.Read], when a node starts.
//
// Secrets are of type [Secret], which prints as [redacted] however it is
// printed. A secret in another setting is refused; [Redact] decides what may be
// shown of a value, and every error passes through it.
package config
