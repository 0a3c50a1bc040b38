package ledger

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// attributeText returns the attribute at a path as text. has is false unless the attribute is a
// string, a number, true or false.
func attributeText(attributes string, path []string) (text string, has bool) {
	if attributes == "" {
		return "", false
	}
	at := json.RawMessage(attributes)
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(at, &object) != nil {
			return "", false
		}
		if at, has = object[name]; !has {
			return "", false
		}
	}
	switch at[0] {
	case '"':
		return text, json.Unmarshal(at, &text) == nil
	case '{', '[', 'n':
		return "", false
	default:
		return string(at), true
	}
}

const maxAttributes = 16 << 10 // bytes

// checkAttributes returns an Invalid error if text cannot be stored as the attributes of an object.
func checkAttributes(text []byte) error {
	if len(text) > maxAttributes {
		return domain.Errorf(domain.Invalid, "the attributes would have %d bytes; want at most %d", len(text), maxAttributes)
	}
	depth, err := checkJSON(text)
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return domain.Errorf(domain.Invalid, "the attributes would have %d levels; want at most %d", depth, maxDepth)
	}
	return nil
}

// checkJSON returns how deeply objects and arrays are nested in text. It fails with Invalid if text
// is not JSON, or if an object contains a name twice.
func checkJSON(text []byte) (depth int, err error) {
	if !json.Valid(text) {
		return 0, domain.Errorf(domain.Invalid, "want JSON")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var open []map[string]bool // for each open object, its names so far; nil for an array
	isName := false
	for {
		token, err := d.Token()
		if err != nil {
			return depth, nil //nolint:nilerr // the end of a valid text
		}
		switch token := token.(type) {
		case json.Delim:
			switch token {
			case '{', '[':
				var names map[string]bool
				if token == '{' {
					names = make(map[string]bool)
				}
				open = append(open, names)
				depth = max(depth, len(open))
			default:
				open = open[:len(open)-1]
			}
			isName = true
		case string:
			if names := innermostNames(open); names != nil && isName {
				if names[token] {
					return 0, domain.Errorf(domain.Invalid, "the name %q occurs twice in one object", domain.Shorten(token))
				}
				names[token], isName = true, false
				continue
			}
			isName = true
		default:
			isName = true
		}
	}
}

func innermostNames(open []map[string]bool) map[string]bool {
	if len(open) == 0 {
		return nil
	}
	return open[len(open)-1]
}

// parsePointer returns the unescaped names in a JSON pointer (RFC 6901).
func parsePointer(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.HasPrefix(text, "/") {
		return nil, domain.Errorf(domain.Invalid, "want a JSON pointer, which begins with a slash, got %q", domain.Shorten(text))
	}
	names := strings.Split(text[1:], "/")
	for i, name := range names {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(name), "~") {
			return nil, domain.Errorf(domain.Invalid, "want ~0 or ~1 for ~ and / in a JSON pointer, got %q", domain.Shorten(text))
		}
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	if len(names) > maxDepth {
		return nil, domain.Errorf(domain.Invalid, "attributes have up to %d levels, got %d", maxDepth, len(names))
	}
	return names, nil
}
