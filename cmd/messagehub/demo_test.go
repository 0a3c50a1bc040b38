package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDemo_AccountsForEveryEvent(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	got := messagehub(t, "", "demo", "--events", "400", "--backlog", "300", "--seed", "5")
	require.Equal(t, 0, got.status, got.err+got.out)
	require.Regexp(t, `^time=\S+ level=WARN msg="the content of an open bundle was deleted; the next Peek asks its domain again" .*\n$`, got.err, "less than 10,000 events are no news")
	require.Contains(t, got.out, "\n0 lost, 0 duplicated, order kept\n")
	require.Regexp(t, `\nOf 120 deliveries, 0 were lost, and 0 were repeated\.\n\nA watch: the hub has called the watch of a bundle \d+m?s after its Dequeue was answered\.\n`, got.out)
	ledger := regexp.MustCompile(`\nThe ledger of objects: the content of a bundle was deleted from its folder\. A crawl detected the deletion,\nand at the next Peek the domain made the content again\.\n` +
		`  …/(\S+)  Created  CreatedPut\n  …/(\S+)  Deleted  Crawl\n  …/(\S+)  Created  CreatedPut\n\ncheck: clean(, outdated hints repaired: \d)?\n$`).FindStringSubmatch(got.out)
	require.NotNil(t, ledger, got.out)
	require.Equal(t, ledger[1], ledger[2])
	require.NotEqual(t, ledger[1], ledger[3], "it has another name")
	require.Regexp(t, `mobile answered 503 to 48 calls\. All of its jobs are dead letters:\n  message m0\.0, dead after 2 attempts, the last one answered with 503\n`, got.out)
	require.Contains(t, got.out, "mobile is available again: 12 dead letters were re-triggered, and the hub called it with their messages.\n")
	require.Regexp(t, `the other 12 were re-triggered, and it fetched their messages by Peek and Dequeue, in \d+ bundles?\.`, got.out)
	require.Regexp(t, `(?m)^ +report +slow +24 +0 +0 +0 +0$`, got.out)
	require.Regexp(t, `(?m)^ +mobile +dead +12 +12 +(49|5\d|6\d) +0 +0$`, got.out)
	require.Contains(t, got.out, "12 actors, 400 events, and a backlog of 300 for Lærke El.")
	require.Regexp(t, `(?m)^ +actor +role +clients +events +bundles +KB +peek p50 +p99 +dequeue p50 +p99 +RU$`, got.out)
	require.Regexp(t, `(?m)^ +all +700 `, got.out)
	require.Regexp(t, `(?m)^ +579\d{10} +Nørre Net +DDM +1 `, got.out)
	require.Regexp(t, `(?m)^ +579\d{10} +Øens Net +DDM +called `, got.out)
	require.Regexp(t, `The receiver of Målerhuset was unavailable: it answered 503 to [3-9]\d* calls\. A notification for this actor is a dead letter:\n  [-.0-9a-f]+ after 3 attempts: `, got.out)
	require.Regexp(t, `The receiver is available again, the dead letter was replayed, and Målerhuset has fetched [1-9]\d* events\.`, got.out)
	require.Regexp(t, `sending took [1-9]\d* RU \(\d+\.\d\d an event\), background work [1-9]\d*, in total [1-9]\d+\.`, got.out)
	require.NotContains(t, got.out, " 0.0  ", "everything takes some time")
}

func TestDemo_PrintsNoVerdictWhenItIsStopped(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	var errs strings.Builder
	status := run(ctx, &process{
		args: []string{"messagehub", "demo", "--events", "100", "--backlog", "0"},
		out:  &signallingWriter{want: "A day of", seen: cancel}, err: &errs,
	})
	require.Equal(t, 1, status)
	require.Equal(t, "messagehub: stopped before the end, without a verdict\n", errs.String())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the temporary folder is gone")
}
