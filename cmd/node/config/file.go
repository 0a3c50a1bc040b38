package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readYAML sets the keys that a YAML text contains. Errors name the text by
// path.
func (c *Config) readYAML(path string, text []byte) []error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	switch err := decoder.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil // an empty file, which sets no keys
	case err != nil:
		return []error{fmt.Errorf("%s: %w; messagehub help configuration has an example", path, err)}
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return []error{fmt.Errorf("%s: a second YAML document follows; keep one", path)}
	}
	f := configFile{c: c, path: path, seen: make(map[string]int)}
	f.walkSection("", doc.Content[0])
	return f.faults
}

type configFile struct {
	c      *Config
	path   string
	seen   map[string]int // line number of each key
	faults []error
}

func (f *configFile) addFault(name string, at *yaml.Node, what string) {
	f.faults = append(f.faults, fmt.Errorf("%s (%s): %s", name, f.lineOf(at), what))
}

func (f *configFile) lineOf(n *yaml.Node) string { return fmt.Sprintf("%s line %d", f.path, n.Line) }

// walkSection sets the keys of a section. section is "" for the top level;
// otherwise it ends with a dot.
func (f *configFile) walkSection(section string, n *yaml.Node) {
	n = resolveAlias(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // an empty section: all of its keys are commented out
	}
	if n.Kind != yaml.MappingNode {
		f.faults = append(f.faults, fmt.Errorf("%s: want keys with values, such as listen: 127.0.0.1:8080", f.lineOf(n)))
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		name, at, v := currentName(section+n.Content[i].Value), n.Content[i], resolveAlias(n.Content[i+1])
		if line, ok := f.seen[name]; ok {
			f.addFault(name, at, fmt.Sprintf("it stands in line %d already; keep one", line))
			continue
		}
		f.seen[name] = at.Line
		k, ok := findKey(name)
		switch {
		case ok:
			f.setKey(k, v)
		case isSection(name):
			f.walkSection(name+".", v)
		default:
			f.faults = append(f.faults, unknown(name, f.lineOf(at), f.knownKeys(section)))
		}
	}
}

// A listValue is a value that the file may contain as a YAML list.
type listValue interface {
	value
	// decode decodes the list. Relative paths in it are relative to folder.
	decode(list *yaml.Node, folder string) error
}

// mayHaveSecrets reports whether the YAML node n may contain secrets for v. The
// value itself rejects secrets in wrong places.
func mayHaveSecrets(v value, n *yaml.Node) bool {
	switch v.(type) {
	case partiesValue, *storesValue:
		return n.Kind == yaml.SequenceNode
	}
	return false
}

// mayTextHaveSecrets is mayHaveSecrets for the text of an environment variable
// or a flag.
func mayTextHaveSecrets(v value, text string) bool {
	var doc yaml.Node
	return yaml.Unmarshal([]byte(text), &doc) == nil && len(doc.Content) == 1 && mayHaveSecrets(v, doc.Content[0])
}

// setKey sets the key k to the YAML value v.
func (f *configFile) setKey(k key, v *yaml.Node) {
	from := source{byFile, f.lineOf(v)}
	if list, ok := k.in(f.c).(listValue); ok {
		if text := secretIn(v); text != "" && !mayHaveSecrets(list, v) {
			f.faults = append(f.faults, secretFault(k.name, text, from))
			return
		}
		if err := list.decode(v, filepath.Dir(f.path)); err != nil {
			f.faults = append(f.faults, fmt.Errorf("%s (%s): %w", k.name, from.text, err))
			return
		}
		f.c.from[k.name] = from
		return
	}
	if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
		f.addFault(k.name, v, wantedValue(v))
		return
	}
	f.faults = append(f.faults, f.c.set(k, v.Value, from)...)
}

// wantedValue says what the file should contain instead of n. Some settings
// accept several values in one text.
func wantedValue(n *yaml.Node) string {
	if n.Kind == yaml.SequenceNode {
		return "want one value, not a list; if the setting has several values, write them as one text, with blanks between them"
	}
	return "want one value"
}

// knownKeys returns the names of the keys in section.
func (f *configFile) knownKeys(section string) []string {
	var names []string
	for _, k := range keys {
		if strings.HasPrefix(k.name, section) {
			names = append(names, k.name)
		}
	}
	return names
}

// secretIn returns a text in or below the node n that contains a secret, or "".
func secretIn(n *yaml.Node) string {
	if hasSecret(n.Value) {
		return n.Value
	}
	for _, inner := range n.Content {
		if text := secretIn(inner); text != "" {
			return text
		}
	}
	return ""
}

func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
