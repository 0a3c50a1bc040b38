package ledger

import (
	"slices"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A queryPlan is the part of a filter that a store can evaluate. The store returns all objects with
// selected rows. Unless isExact is set, it may also return objects without selected rows.
type queryPlan struct {
	buckets []string // names of the buckets to read; nil: all buckets in the store
	keys    []string // keys of the objects to read; nil: all keys that begin with prefix
	prefix  string
	matches []repository.ObjectMatch
	isExact bool
}

// planQuery returns the part of the filter that a store can evaluate.
func (f *Filter) planQuery() queryPlan {
	p := queryPlan{isExact: f.OnlyCurrent}
	for i := range f.conditions {
		c := &f.conditions[i]
		texts, isPlain := c.plainValues()
		switch {
		case c.field == "bucket": // mayHaveBucket checks this condition for each bucket
			if isPlain && p.buckets == nil {
				p.buckets = texts
			}
		case c.field == "key" && isPlain && p.keys == nil:
			p.keys = texts
		case c.field == "key":
			p.isExact = p.isExact && p.prefix == "" && c.isPrefix()
			if prefix := c.textPrefix(); len(prefix) > len(p.prefix) {
				p.prefix = prefix
			}
		case f.OnlyCurrent && isPlain && isMatchField(c.field) && !slices.Contains(texts, ""):
			p.matches = append(p.matches, repository.ObjectMatch{Field: domain.ObjectField(c.field), Values: texts})
		default:
			p.isExact = false
		}
	}
	return p
}

func isMatchField(field string) bool {
	switch domain.ObjectField(field) {
	case domain.FieldVersion, domain.FieldSize, domain.FieldETag, domain.FieldSHA256, domain.FieldStorageClass, domain.FieldArchiveStatus, domain.FieldReason, domain.FieldIngestID:
		return true
	default:
		return false
	}
}

// plainValues returns the values of a condition if a row meets the condition exactly when its field
// equals one of them. ok is false if the condition has wildcards or times, ignores case, or
// requires all of several values.
func (c *condition) plainValues() (texts []string, ok bool) {
	if c.every && len(c.values) > 1 {
		return nil, false
	}
	for i := range c.values {
		v := &c.values[i]
		text, isPlain := v.pattern.plainPrefix()
		if !isPlain || v.isMoment || v.pattern.ignoreCase {
			return nil, false
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	return slices.Compact(texts), true
}

// isPrefix reports whether the condition matches exactly the texts that begin with one prefix.
func (c *condition) isPrefix() bool {
	return len(c.values) == 1 && c.values[0].pattern.isPrefix() && !c.values[0].pattern.ignoreCase
}

// textPrefix returns a common prefix of all texts that match the condition.
func (c *condition) textPrefix() string {
	if c.values[0].pattern.ignoreCase {
		return ""
	}
	prefix, _ := c.values[0].pattern.plainPrefix()
	for i := range c.values[1:] {
		next, _ := c.values[i+1].pattern.plainPrefix()
		switch {
		case !c.every:
			prefix = commonPrefix(prefix, next)
		case len(next) > len(prefix):
			prefix = next
		}
	}
	return prefix
}

// commonPrefix returns the longest common prefix of a and b that ends between characters.
func commonPrefix(a, b string) string {
	for n, c := range a {
		if size := len(string(c)); n+size > len(b) || a[n:n+size] != b[n:n+size] {
			return a[:n]
		}
	}
	return a
}
