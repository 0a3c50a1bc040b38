package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

func TestSampleOrigin_NeedsNoDomainThatRuns(t *testing.T) {
	for _, tc := range []struct {
		domains, want string
		mode          domain.ContentMode
	}{
		{"[]", "Charges", ""},
		{"[{name: Charges, content: inline}]", "Charges", domain.Inline},
		{"[{name: Charges, content: request}]", "Aggregations", ""},
	} {
		cfg, err := config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_DOMAINS=" + tc.domains}})
		require.NoError(t, err)
		origin, mode, exists := sampleOrigin(&cfg)
		require.True(t, exists)
		require.Equal(t, tc.want, origin.String())
		require.Equal(t, tc.mode, mode)
	}
	cfg, err := config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_DOMAINS=[{name: Charges, content: request}, {name: Aggregations, content: request}, " +
		"{name: MarketRoles, content: request}, {name: MeteringPoints, content: request}, {name: TimeSeries, content: request}]"}})
	require.NoError(t, err)
	_, _, exists := sampleOrigin(&cfg)
	require.False(t, exists)
}

func TestCheck_RejectsAnActorWithoutStoredData(t *testing.T) {
	h := startHub(t, "--in-memory")
	got := runWith(t, []string{tokenVariable + "=" + operatorToken}, "check", "--url", h.url(t), "--actor", "579000133055X")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "nothing is stored for actor 579000133055X")
	require.NotContains(t, got.out, "clean")
	require.NoError(t, h.stop(t, syscall.SIGTERM))
}

func TestCommands_RefuseACommandThatDoesNotExist(t *testing.T) {
	for _, command := range []string{"emulator", "queue", "objects", "broker", "subscriptions", "deliveries", "watches", "dead-letters", "config"} {
		got := messagehub(t, "", command, "nope")
		require.Equal(t, 2, got.status, command)
		require.Contains(t, got.err, "nope", command)
	}
}

func TestVersionFlag_PrintsWhatTheCommandPrints(t *testing.T) {
	got := messagehub(t, "", "--version")
	require.Equal(t, messagehub(t, "", "version"), got)
	require.True(t, strings.HasPrefix(got.out, "messagehub "))
}
