package filter

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// MaxAttached is the maximum length of the JSON object with all attachments of a call, in bytes.
const MaxAttached = 131_072

// errorsName is the name of the member that has the errors of the attachments that failed.
const errorsName = "_errors"

// Attachments has the expressions of a subscription that are evaluated for each call, by their names.
type Attachments map[string]*Expression

// CompileSubscription returns the filter and the attachments of a subscription. The filter is nil if
// the subscription has no filter. An Invalid error begins with the JSON pointer of the invalid
// expression.
func CompileSubscription(s *domain.Subscription) (*Expression, Attachments, error) {
	var filter *Expression
	if s.Filter != "" {
		var err error
		if filter, err = Compile(s.Filter); err != nil {
			return nil, nil, domain.Errorf(domain.Invalid, "/jmespath_query: %w", err)
		}
	}
	all := make(Attachments, len(s.Attachments))
	for _, name := range slices.Sorted(maps.Keys(s.Attachments)) {
		e, err := Compile(s.Attachments[name])
		if err != nil {
			escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(domain.Shorten(name))
			return nil, nil, domain.Errorf(domain.Invalid, "/attachments/%s/expression: %w", escaped, err)
		}
		all[name] = e
	}
	return filter, all, nil
}

// Evaluate returns the attachments as a JSON object. An attachment that fails is left out, and
// the member _errors has the reason. If the object would be larger than [MaxAttached], it has
// only the member _errors, which says so. Without attachments, the result is nil.
func (a Attachments) Evaluate(m Metadata) []byte {
	if len(a) == 0 {
		return nil
	}
	values, failed := make(map[string]any, len(a)+1), make(map[string]string)
	size := 2
	for _, name := range slices.Sorted(maps.Keys(a)) {
		value, err := a[name].Search(m)
		if err == nil && !isJSON(value) {
			err = domain.Errorf(domain.Invalid, "the result has a number that JSON does not have")
		}
		if err != nil {
			failed[name] = clipError(err)
			continue
		}
		values[name] = value
		size += sizeOf(name) + sizeOf(value) + len(":,")
	}
	if len(failed) > 0 {
		values[errorsName] = failed
		size += sizeOf(errorsName) + 4
		for name, text := range failed {
			size += sizeOf(name) + sizeOf(text) + 2
		}
	}
	if len(values) > 0 {
		size--
	}
	if len(failed) > 0 {
		size--
	}
	if size > MaxAttached { // do not encode the values: the text may be many times larger than MaxAttached
		values = map[string]any{errorsName: fmt.Sprintf("Attachments too large (%d > %d)", size, MaxAttached)}
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("encode attachments: %v", err)) // cannot happen: isJSON checked every value
	}
	return text
}

// isJSON reports whether a result can be encoded as JSON. It is false for the result of a division by
// 0, because JSON has no infinity.
func isJSON(value any) bool {
	switch v := value.(type) {
	case nil, bool, string:
		return true
	case float64:
		return !math.IsInf(v, 0) && !math.IsNaN(v)
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !isJSON(e) })
	case map[string]any:
		for _, e := range v {
			if !isJSON(e) {
				return false
			}
		}
		return true
	}
	return false
}

// clipError returns the beginning of the text of an error. Errors of the library can be long, because
// they repeat whole arguments.
func clipError(err error) string {
	const limit = 200
	text := err.Error()
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

// sizeOf returns the length of a value as JSON. It does not encode the value: if parts of the value
// are shared, the JSON text can be many times larger than the value in memory.
func sizeOf(value any) int {
	switch v := value.(type) {
	case []any:
		size := 2 + max(0, len(v)-1)
		for _, e := range v {
			size += sizeOf(e)
		}
		return size
	case map[string]any:
		size := 2 + max(0, 2*len(v)-1)
		for name, e := range v {
			size += sizeOf(name) + sizeOf(e)
		}
		return size
	}
	text, _ := json.Marshal(value)
	return len(text)
}
