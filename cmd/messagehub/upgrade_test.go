package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/level"
)

// nextLevels contains the levels of a fictitious next version.
var nextLevels = level.Table{{Since: "v1"}, {Since: "v2", Changes: []string{"Mailboxes may have a colour."}}}

// upgrade runs `messagehub upgrade` as a version that supports these levels.
func (d *azureAccounts) upgrade(levels level.Table, args ...string) result {
	d.Helper()
	var out, errs bytes.Buffer
	status := run(d.Context(), &process{
		args: append([]string{"messagehub", "upgrade"}, args...), environ: d.environ, levels: levels,
		in: strings.NewReader(""), out: &out, err: &errs,
	})
	for _, secret := range d.secrets {
		require.NotContains(d, out.String()+errs.String(), secret)
	}
	return result{status, out.String(), errs.String()}
}

// serve runs a node of a version that supports these levels, until stop is
// called.
func (d *azureAccounts) serve(levels level.Table, name string) (stop func()) {
	d.Helper()
	cfg, err := config.Load(config.Inputs{Environ: d.environ})
	require.NoError(d, err)
	cfg.Listen, cfg.AdminListen, cfg.Data = "127.0.0.1:0", "", d.TempDir()
	n, err := node.Open(d.Context(), cfg, node.Options{Levels: levels, Version: name, ReadinessInterval: -1})
	require.NoError(d, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = n.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	d.Cleanup(stop)
	return stop
}

func TestUpgrade_ShowsNodesAndRaisesTheLevelOnceAllKnowIt(t *testing.T) {
	d := newAccounts(t)
	d.provision(0)
	stopOld := d.serve(nextLevels[:1], "v1")
	got := d.upgrade(nextLevels[:1])
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "The store has level 1. This version, dev, knows levels up to 1.\n")
	require.Contains(t, got.out, "Nothing to upgrade: the store has level 1, the highest that this version knows.\n")
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Regexp(t, `NODE +VERSION +KNOWS LEVEL +BEATS\n`+host+` +v1 +1 +1\n`, got.out)

	stopNew := d.serve(nextLevels, "v2")
	got = d.upgrade(nextLevels, "--check")
	require.Equal(t, 1, got.status)
	require.Regexp(t, host+` +v1 +1 +1\n`, got.out)
	require.Regexp(t, host+` +v2 +2 +1\n`, got.out)
	require.Contains(t, got.out, "Level 2 changes:\n  Mailboxes may have a colour.\n")
	require.NotContains(t, got.out, "announced")

	stopOld()
	got = d.upgrade(nextLevels, "--back")
	require.Equal(t, result{1, got.out, "messagehub: nothing to cancel: no level is announced\n"}, got)
	got = d.upgrade(nextLevels)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "level 2 is announced\nthe store has level 2\n")
	got = d.upgrade(nextLevels)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "Nothing to upgrade: the store has level 2")
	got = d.upgrade(nextLevels, "--back")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "level 2 is active, so documents may have its formats, and it cannot be lowered")
	got = d.upgrade(nextLevels[:1], "--check")
	require.Equal(t, 1, got.status)
	require.Contains(t, got.err, "the store has level 2, and this version knows levels up to 1: use version dev or a newer one")
	stopNew()
	require.Contains(t, d.upgrade(nextLevels).out, "No node uses the store.")
}

func TestUpgrade_WorksOnAFolderWhoseHubIsStopped(t *testing.T) {
	data := t.TempDir()
	require.Contains(t, messagehub(t, "", "upgrade", "--data", data).err, "no hub has kept anything there")
	h := startHub(t, "--data", data)
	require.Contains(t, messagehub(t, "", "upgrade", "--data", data).err, "another process uses it; stop that one")
	require.NoError(t, h.stop(t, os.Interrupt), h.stderrText())
	d := &azureAccounts{T: t}
	got := d.upgrade(nextLevels, "--data", data)
	require.Equal(t, 0, got.status, got.err)
	require.Contains(t, got.out, "level 2 is announced\nthe store has level 2\n")
	require.NotContains(t, got.out, "NODE")
	h = spawnHub(t, "--data", data)
	require.Error(t, h.wait(t))
	require.Contains(t, h.stderrText(), "the store has level 2, and this version knows levels up to 1: use version dev or a newer one")
}

func TestUpgrade_RefusesAWrongCommandLine(t *testing.T) {
	got := messagehub(t, "", "upgrade", "--check", "--back")
	require.Equal(t, 2, got.status)
	require.Contains(t, got.err, "--back: with --check nothing is changed")
	file := filepath.Join(t.TempDir(), "hub.yaml")
	require.NoError(t, os.WriteFile(file, []byte("in-memory: true\n"), 0o600))
	require.Contains(t, messagehub(t, "", "upgrade", "--config", file).err, "such a hub stores nothing")
	require.Equal(t, 2, messagehub(t, "", "upgrade", "now").status)
}
