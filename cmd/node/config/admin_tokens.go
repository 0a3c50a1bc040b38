package config

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/domain"
)

// An AdminToken is an operator's token. The configuration contains only its
// hash.
type AdminToken struct {
	Name   string // identifies the operator in records
	SHA256 [32]byte
}

// AdminTokens lists operators' tokens in file order.
type AdminTokens []AdminToken

type adminTokensValue AdminTokens

const adminTokensExample = "[{name: kim-2026, sha256: 9f86d081…}]" //nolint:gosec // an example

func (v *adminTokensValue) String() string {
	names := make([]string, len(*v))
	for i, t := range *v {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

// Set parses a YAML list. A variable or flag contains the list in YAML's
// one-line syntax.
func (v *adminTokensValue) Set(s string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s), &doc); err != nil || len(doc.Content) != 1 {
		return errors.New("want a list such as " + adminTokensExample)
	}
	return v.decode(doc.Content[0], "")
}

// decode decodes a YAML list. Its error contains the position of every fault.
func (v *adminTokensValue) decode(list *yaml.Node, _ string) error {
	if list.Kind != yaml.SequenceNode {
		return errors.New("want a list such as " + adminTokensExample)
	}
	var tokens AdminTokens
	var faults []error
	for _, item := range list.Content {
		t, err := decodeAdminToken(resolveAlias(item))
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("line %d: %w", item.Line, err))
		case slices.ContainsFunc(tokens, func(x AdminToken) bool { return x.Name == t.Name }):
			faults = append(faults, fmt.Errorf("line %d: %s stands in the list twice; keep one", item.Line, t.Name))
		default:
			tokens = append(tokens, t)
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	*v = adminTokensValue(tokens)
	return nil
}

func decodeAdminToken(item *yaml.Node) (t AdminToken, err error) {
	if item.Kind != yaml.MappingNode {
		return t, errors.New("want an entry such as " + strings.Trim(adminTokensExample, "[]"))
	}
	texts, err := readEntry(item, []string{"name", "sha256"}, "")
	if err != nil {
		return t, err
	}
	id, err := domain.ParseActorID(texts["name"]) // the name must be valid as an actor's id, so that it is safe in logs and records
	if err != nil {
		return t, errors.New("name: want 1 to 64 characters of A-Z a-z 0-9 . _ -")
	}
	t.Name = id.String()
	sum, err := hex.DecodeString(texts["sha256"])
	if err != nil || len(sum) != len(t.SHA256) {
		return t, errors.New("sha256: want 64 hexadecimal digits, as printf %s TOKEN | sha256sum prints them")
	}
	copy(t.SHA256[:], sum)
	return t, nil
}
