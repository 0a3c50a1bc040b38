package domain_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestKindOf(t *testing.T) {
	busy := domain.Errorf(domain.Busy, "throttled")
	for _, tc := range []struct {
		name string
		err  error
		want domain.Kind
	}{
		{"of nil is unknown", nil, domain.Unknown},
		{"of an unclassified error is unknown", io.ErrUnexpectedEOF, domain.Unknown},
		{"of ErrNoData is unknown, because it is not a failure", domain.ErrNoData, domain.Unknown},
		{"is the kind that Errorf received", busy, domain.Busy},
		{"survives wrapping", fmt.Errorf("save: %w", fmt.Errorf("page 3: %w", busy)), domain.Busy},
		{"survives joining", errors.Join(io.EOF, busy), domain.Busy},
		{"is the kind of the outermost Error", domain.Errorf(domain.Damaged, "read: %w", busy), domain.Damaged},
		{"is found around an unclassified error", domain.Errorf(domain.Uncertain, "read: %w", io.EOF), domain.Uncertain},
		{"is lost if only the text is kept", errors.New("save: " + busy.Error()), domain.Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, tc.want, domain.KindOf(tc.err)) })
	}
}

func TestAKind_LeavesTheCauseInTheErrorChain(t *testing.T) {
	err := domain.Errorf(domain.Unavailable, "open %s: %w", "drawer", domain.Errorf(domain.Busy, "wait: %w", io.EOF))
	require.EqualError(t, err, "open drawer: wait: EOF")
	require.ErrorIs(t, err, io.EOF)

	classified, ok := errors.AsType[*domain.Error](err)
	require.True(t, ok)
	require.EqualError(t, classified.Unwrap(), "open drawer: wait: EOF")
}

func TestKindsHaveNames(t *testing.T) {
	for kind, name := range map[domain.Kind]string{
		domain.Unknown:         "unknown",
		domain.Invalid:         "invalid",
		domain.NotFound:        "not found",
		domain.Conflict:        "conflict",
		domain.Busy:            "busy",
		domain.Uncertain:       "uncertain",
		domain.Unavailable:     "unavailable",
		domain.Damaged:         "damaged",
		domain.NewerFormat:     "newer format",
		domain.NewerFormat + 1: "unknown",
		-1:                     "unknown",
	} {
		require.Equal(t, name, kind.String(), "kind %d", kind)
	}
}
