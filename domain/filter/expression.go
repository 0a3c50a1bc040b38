package filter

import (
	"encoding/json"
	"errors"
	"math"
	"unicode/utf8"

	"github.com/jmespath-community/go-jmespath/pkg/interpreter"
	"github.com/jmespath-community/go-jmespath/pkg/parsing"

	"github.com/messagehub/messagehub/domain"
)

// Limits of an evaluation.
const (
	MaxMetadata = 64 << 10 // maximum length of metadata, in bytes of JSON
	MaxValues   = 8 << 10  // maximum number of values in metadata: objects, lists and their elements
	MaxMemory   = 16 << 20 // maximum number of bytes that an evaluation allocates
	maxResult   = 2 << 20  // maximum length of a result, in bytes of JSON; a part that occurs several times counts each time
)

// Metadata is the input of expressions.
type Metadata struct{ value any }

// ParseMetadata reads JSON of up to [MaxMetadata] bytes and [MaxValues] values. It fails with Invalid
// for any other text.
func ParseMetadata(text []byte) (Metadata, error) {
	if len(text) > MaxMetadata {
		return Metadata{}, domain.Errorf(domain.Invalid, "metadata: want at most %d bytes, got %d", MaxMetadata, len(text))
	}
	if !utf8.Valid(text) { // the decoder would replace each invalid byte by three bytes
		return Metadata{}, domain.Errorf(domain.Invalid, "metadata: want UTF-8")
	}
	var m Metadata
	if err := json.Unmarshal(text, &m.value); err != nil {
		return Metadata{}, domain.Errorf(domain.Invalid, "metadata: %w", err)
	}
	if n := countValues(m.value); n > MaxValues {
		return Metadata{}, domain.Errorf(domain.Invalid, "metadata: want at most %d values, got %d", MaxValues, n)
	}
	return m, nil
}

// countValues returns the number of values in v, including v.
func countValues(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += countValues(e)
		}
	case map[string]any:
		for _, e := range v {
			n += countValues(e)
		}
	}
	return n
}

// An Expression is a JMESPath expression that was accepted. It is safe for concurrent use.
type Expression struct{ node parsing.ASTNode }

// Compile returns an expression, or an Invalid error with the reason why it is refused.
func Compile(text string) (*Expression, error) {
	if n := len(text); n == 0 || n > domain.MaxExpression {
		return nil, domain.Errorf(domain.Invalid, "want 1 to %d bytes, got %d", domain.MaxExpression, n)
	}
	node, err := parseExpression(text)
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "want a JMESPath expression: %s", explainSyntax(err))
	}
	b, err := boundOf(&node)
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "%w", err)
	}
	if b.reference != nil {
		return nil, domain.Errorf(domain.Invalid, "the expression is a reference to one")
	}
	if limit := b.maxMemory(); limit > MaxMemory {
		return nil, domain.Errorf(domain.Invalid, "its evaluation may need %.0f MB, more than the limit of %d MB", math.Ceil(limit/(1<<20)), MaxMemory>>20)
	}
	if size := b.size.maxValue(); size > maxResult {
		return nil, domain.Errorf(domain.Invalid, "its result may have %.0f MB, more than the limit of %d MB", math.Ceil(size/(1<<20)), maxResult>>20)
	}
	return &Expression{node}, nil
}

// parseExpression returns the tree of an expression. It returns an error if the parser of the library
// panics, which some texts cause.
func parseExpression(text string) (node parsing.ASTNode, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("the expression is incomplete")
		}
	}()
	return parsing.NewParser().Parse(text)
}

// Search returns the result of the expression for metadata.
func (e *Expression) Search(m Metadata) (result any, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics when it compares values of types without an order
			result, err = nil, domain.Errorf(domain.Invalid, "the expression cannot be evaluated: %v", p)
		}
	}()
	result, err = interpreter.NewInterpreter(m.value, functionCaller, nil).Execute(e.node, m.value)
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "%w", err)
	}
	return result, nil
}

// Matches reports whether the expression matches an event: its result is not null, false, 0 or
// empty. If the evaluation fails, the event does not match.
func (e *Expression) Matches(m Metadata) (bool, error) {
	result, err := e.Search(m)
	if err != nil {
		return false, err
	}
	switch v := result.(type) {
	case nil:
		return false, nil
	case bool:
		return v, nil
	case float64:
		return v != 0, nil
	case string:
		return v != "", nil
	case []any:
		return len(v) > 0, nil
	case map[string]any:
		return len(v) > 0, nil
	}
	return false, domain.Errorf(domain.Invalid, "the result of the expression is not a value")
}
