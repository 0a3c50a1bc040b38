package domain_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func actor(s string) domain.ActorID             { return must(domain.ParseActorID(s)) }
func origin(s string) domain.Origin             { return must(domain.ParseOrigin(s)) }
func group(s string) domain.Group               { return must(domain.ParseGroup(s)) }
func contentType(s string) domain.ContentType   { return must(domain.ParseContentType(s)) }
func documentType(s string) domain.DocumentType { return must(domain.ParseDocumentType(s)) }

// A parser contains a Parse function of package domain. parse returns the text of the parsed value.
type parser struct {
	what  string // name of the value in error messages
	parse func(s string) (string, error)
}

func parserOf[T fmt.Stringer](what string, parse func(s string) (T, error)) parser {
	return parser{what, func(s string) (string, error) {
		v, err := parse(s)
		return v.String(), err
	}}
}

// requireInvalid requires that err is an Invalid error with exactly the given text.
func requireInvalid(t *testing.T, err error, text string) {
	t.Helper()
	require.EqualError(t, err, text)
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}
