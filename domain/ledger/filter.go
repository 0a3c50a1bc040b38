package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Filter selects rows. The zero Filter selects every row.
type Filter struct {
	OnlyCurrent bool
	conditions  []condition // a selected row meets all conditions
	fingerprint string      // fingerprint of the parameters; a token is valid only for the same fingerprint
}

// HasConditions reports whether the filter restricts any field of a row.
func (f *Filter) HasConditions() bool { return len(f.conditions) > 0 }

// A condition requires that one field of a row matches certain values.
type condition struct {
	field  string
	path   []string // names on the path to an attribute
	every  bool     // a row must match all values; otherwise, one value is sufficient
	values []fieldValue
}

// A fieldValue is a value with which a condition compares a field: a pattern or a time.
type fieldValue struct {
	pattern  pattern
	time     time.Time
	isMoment bool
}

const (
	maxValues = 100 // maximum number of values in a filter
	maxDepth  = 10  // maximum nesting depth of attributes
)

// A fieldKind determines how a field is compared with a value.
type fieldKind int

const (
	plainText fieldKind = iota // the value has no wildcards
	wildText                   // the value may have wildcards
	momentText
	sizeText
	boolText
	typeText
	tagText
)

const attributesField = "attributes"

// fieldKinds contains each field that a filter may name, and its kind.
var fieldKinds = map[string]fieldKind{
	"bucket": wildText, "key": wildText, "versionId": wildText, attributesField: wildText,
	"eventTime": momentText, "lastModifiedDate": momentText,
	"size": sizeText, "isDeleteMarker": boolText, "isAccessible": boolText, "eventType": typeText, "eTag": tagText,
	"sha256": plainText, "storageClass": plainText, "reason": plainText, "archiveStatus": plainText, "ingestId": plainText,
}

// ParseFilter returns the filter that the parameters of a request define. A row is selected if it
// meets all conditions. Each condition has one of the following forms. With [] and [or][], a row must
// match one of several values; with [and][], it must match all of them:
//
//	field=value  field[]=value  field[or][]=value  field[and][]=value  attributes[a][b]=value
//
// currentState=false selects all rows instead of only current rows, and caseSensitive=false
// ignores the case of texts. Parameters named in others are ignored. ParseFilter fails with Invalid
// if another parameter is unknown or invalid.
func ParseFilter(params map[string][]string, others ...string) (Filter, error) {
	f := Filter{OnlyCurrent: true}
	isCaseSensitive := true
	options := map[string]*bool{"currentState": &f.OnlyCurrent, "caseSensitive": &isCaseSensitive}
	var names []string // names of the parameters that are conditions
	hash := sha256.New()
	count := 0
	for _, name := range slices.Sorted(maps.Keys(params)) { // sorted, so that equal queries have equal fingerprints and errors
		values := params[name]
		if slices.Contains(others, name) {
			continue
		}
		fmt.Fprintf(hash, "%q%q", name, values)
		count += len(values)
		option := options[name]
		if option == nil {
			names = append(names, name)
			continue
		}
		var err error
		if *option, err = parseOption(name, values); err != nil {
			return Filter{}, err
		}
	}
	if count > maxValues {
		return Filter{}, domain.Errorf(domain.Invalid, "the query has %d values; want at most %d", count, maxValues)
	}
	for _, name := range names {
		c, err := parseCondition(name, params[name], !isCaseSensitive, others)
		if err != nil {
			return Filter{}, err
		}
		f.conditions = append(f.conditions, c)
	}
	f.fingerprint = hex.EncodeToString(hash.Sum(nil)[:12])
	return f, nil
}

func parseOption(name string, values []string) (bool, error) {
	if len(values) == 1 && (values[0] == "true" || values[0] == "false") {
		return values[0] == "true", nil
	}
	return false, domain.Errorf(domain.Invalid, "%s: want true or false, once, got %q", name, domain.Shorten(strings.Join(values, " ")))
}

// parseCondition parses a parameter that is a condition.
func parseCondition(name string, texts []string, ignoreCase bool, others []string) (condition, error) {
	field, path, isList, every, err := parseName(name)
	c := condition{field: field, path: path, every: every}
	kind, isKnown := fieldKinds[field]
	switch {
	case err != nil:
		return c, err
	case !isKnown:
		return c, unknownParameter(name, others)
	case field != attributesField && len(path) > 0:
		return c, domain.Errorf(domain.Invalid, "%s: only attributes have parts; several values are %s[]=, %s[or][]= or %s[and][]=", domain.Shorten(name), field, field, field)
	case field == attributesField && len(path) == 0:
		return c, domain.Errorf(domain.Invalid, "%s: want the name of an attribute, as in attributes[name]=value", domain.Shorten(name))
	case len(path) > maxDepth:
		return c, domain.Errorf(domain.Invalid, "%s: attributes have up to %d levels, got %d", domain.Shorten(name), maxDepth, len(path))
	case !isList && len(texts) > 1:
		return c, domain.Errorf(domain.Invalid, "%s occurs %d times; for one of several values, use %s[]=", domain.Shorten(name), len(texts), domain.Shorten(name))
	}
	for _, text := range texts {
		v, err := parseValue(kind, text, ignoreCase)
		if err != nil {
			return c, domain.Errorf(domain.Invalid, "%s: %w", domain.Shorten(name), err)
		}
		c.values = append(c.values, v)
	}
	return c, nil
}

func unknownParameter(name string, others []string) error {
	known := append(slices.Clone(others), "currentState", "caseSensitive")
	for field := range fieldKinds {
		known = append(known, field)
	}
	slices.Sort(known)
	return domain.Errorf(domain.Invalid, "unknown query parameter %q; known are %s", domain.Shorten(name), strings.Join(known, ", "))
}

// parseName splits a parameter's name into the field, the path of an attribute, and the form of the
// list of values.
func parseName(name string) (field string, path []string, isList, every bool, err error) {
	field, rest, hasParts := strings.Cut(name, "[")
	if !hasParts {
		return field, nil, false, false, nil
	}
	malformed := domain.Errorf(domain.Invalid, "%s: want parts in square brackets, as in attributes[name]", domain.Shorten(name))
	inner, isClosed := strings.CutSuffix(rest, "]")
	if !isClosed {
		return field, nil, false, false, malformed
	}
	path = strings.Split(inner, "][")
	if last := len(path) - 1; path[last] == "" {
		isList, path = true, path[:last]
		if last := len(path) - 1; last >= 0 && (path[last] == "or" || path[last] == "and") {
			every, path = path[last] == "and", path[:last]
		}
	}
	for _, part := range path {
		if part == "" || strings.ContainsAny(part, "[]") {
			return field, nil, false, false, malformed
		}
	}
	return field, path, isList, every, nil
}

func parseValue(kind fieldKind, text string, ignoreCase bool) (v fieldValue, err error) {
	switch kind {
	case wildText:
		v.pattern, err = parsePattern(text, ignoreCase)
		return v, err
	case momentText:
		if v.time, err = time.Parse(time.RFC3339Nano, text); err == nil {
			v.isMoment = true
			return v, nil
		}
		if !strings.ContainsAny(text, "*?") {
			return v, domain.Errorf(domain.Invalid, "want a time such as 2026-03-04T05:06:07Z, or a part of one with wildcards, such as 2026-03-*, got %q", domain.Shorten(text))
		}
		v.pattern, err = parsePattern(text, ignoreCase)
		return v, err
	case sizeText:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return v, domain.Errorf(domain.Invalid, "want a whole number of bytes, got %q", domain.Shorten(text))
		}
		text = strconv.FormatInt(n, 10)
	case boolText:
		if text != "true" && text != "false" {
			return v, domain.Errorf(domain.Invalid, "want true or false, got %q", domain.Shorten(text))
		}
	case typeText:
		if text != domain.ObjectCreated.String() && text != domain.ObjectDeleted.String() {
			return v, domain.Errorf(domain.Invalid, "want Created or Deleted, got %q", domain.Shorten(text))
		}
	case tagText:
		text = domain.QuoteETag(text)
	case plainText:
	}
	v.pattern = plainPattern(text, ignoreCase)
	return v, nil
}

// matches reports whether the filter selects the row r.
func (f *Filter) matches(r *Row) bool {
	if f.OnlyCurrent && !r.IsCurrent {
		return false
	}
	for i := range f.conditions {
		if !f.conditions[i].holds(r) {
			return false
		}
	}
	return true
}

// holds reports whether r meets the condition. A row without the field meets no condition.
func (c *condition) holds(r *Row) bool {
	text, has := c.textOf(r)
	if !has {
		return false
	}
	fits := func(v fieldValue) bool {
		if v.isMoment {
			return v.time.Equal(c.timeOf(r))
		}
		return v.pattern.matches(text)
	}
	if c.every {
		return !slices.ContainsFunc(c.values, func(v fieldValue) bool { return !fits(v) })
	}
	return slices.ContainsFunc(c.values, fits)
}

func (c *condition) timeOf(r *Row) time.Time {
	if c.field == "eventTime" {
		return r.Time
	}
	return r.LastModified
}

// textOf returns the text of the condition's field in r. has is false if r does not contain the
// field.
func (c *condition) textOf(r *Row) (text string, has bool) {
	switch c.field {
	case "bucket":
		return r.Name.Bucket(), true
	case "key":
		return r.Name.Key(), true
	case "eventType":
		return r.Type.String(), true
	case "isDeleteMarker":
		return strconv.FormatBool(r.IsMarker()), true
	case "isAccessible":
		return strconv.FormatBool(r.IsAccessible()), true
	case "eventTime", "lastModifiedDate":
		t := c.timeOf(r)
		return t.UTC().Format(time.RFC3339Nano), !t.IsZero()
	case attributesField:
		return attributeText(r.Attributes, c.path)
	default:
		text = r.Field(domain.ObjectField(c.field))
		return text, text != ""
	}
}
