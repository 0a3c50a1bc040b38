package cosmos

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/embedded/disk"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// fileOf returns the file of an embedded engine after fill has written to it.
func fileOf(t *testing.T, fill func(*rig)) []byte {
	t.Helper()
	dir := t.TempDir()
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	fill(rigOn(t, engine))
	require.NoError(t, engine.Close())
	file, err := os.ReadFile(filepath.Join(dir, disk.FileName))
	require.NoError(t, err)
	return file
}

// flipBit opens an engine on file, with one bit changed in every occurrence of text.
func flipBit(t *testing.T, file []byte, text string) *rig {
	t.Helper()
	require.Contains(t, string(file), text)
	changed := []byte(text)
	changed[len(changed)-1] ^= 2
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, disk.FileName), bytes.ReplaceAll(file, []byte(text), changed), 0o600))
	engine, err := embedded.Open(embedded.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return rigOn(t, engine)
}

// newActors returns n recipients in ascending order.
func newActors(t *testing.T, n int) []domain.ActorID {
	t.Helper()
	all := make([]domain.ActorID, n)
	for i := range all {
		var err error
		all[i], err = domain.ParseActorID(fmt.Sprintf("actor-%04d", i))
		require.NoError(t, err)
	}
	return all
}

func fillMailboxes(t *testing.T, all []domain.ActorID) func(*rig) {
	return func(r *rig) {
		node := r.node(Options{Exclusive: true, SweepEvery: -1}, false)
		for _, actor := range all {
			_, err := node.Save(t.Context(), actor, repositorytest.Events(3, actor, repositorytest.WithOrigin(domain.TimeSeries)))
			require.NoError(t, err)
			node.AwaitHints(t.Context(), actor)
		}
	}
}

func headOf(actor domain.ActorID) string {
	return `"id":"head","partitionKey":"` + actor.String() + `","operation":"`
}

func TestDamagedFile_IsReportedAsDamaged(t *testing.T) {
	all := newActors(t, 3)
	r := flipBit(t, fileOf(t, fillMailboxes(t, all)), headOf(all[1]))
	node := r.node(Options{}, false)
	save := func(actor domain.ActorID) error {
		_, err := node.Save(t.Context(), actor, repositorytest.Events(1, actor, repositorytest.WithOrigin(domain.TimeSeries)))
		return err
	}
	peek := func(actor domain.ActorID) error {
		_, err := repositorytest.Peek(t.Context(), r.stores(node), actor, allGroups, domain.BundleID{}, repositorytest.OnRequest)
		return err
	}
	for name, call := range map[string]func(domain.ActorID) error{"save": save, "peek": peek} {
		err := call(all[1])
		require.Equal(t, domain.Damaged, domain.KindOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "the file is damaged", name)
		require.NoError(t, call(all[0]), name)
		require.NoError(t, call(all[2]), name)
	}
	_, err := node.Sweep(t.Context())
	require.Equal(t, domain.Damaged, domain.KindOf(err))
}

func TestFind_ListsADamagedFileAsUnread(t *testing.T) {
	all := newActors(t, 3)
	var bundle domain.BundleID
	file := fileOf(t, func(r *rig) {
		fillMailboxes(t, all)(r)
		node := r.node(Options{Exclusive: true, SweepEvery: -1}, false)
		b, err := repositorytest.Peek(t.Context(), r.stores(node), all[1], allGroups, domain.BundleID{}, repositorytest.OnRequest)
		require.NoError(t, err)
		bundle = b.ID
	})
	for name, text := range map[string]string{
		"head":   headOf(all[1]),
		"gate":   `"recipient":"actor-0001"`,
		"bundle": `"id":"` + bundle.String() + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			node := flipBit(t, file, text).node(Options{}, false)
			unread := 0
			for _, recipient := range []domain.ActorID{all[1], {}} {
				events, err := node.FindEvent(t.Context(), repository.EventQuery{ID: repositorytest.NewEventID(), Recipient: recipient})
				require.NoError(t, err)
				bundles, err := node.FindBundle(t.Context(), bundle, recipient, 20)
				require.NoError(t, err)
				for _, u := range append(events.Unread, bundles.Unread...) {
					require.Contains(t, u.Reason, "the file is damaged")
					unread++
				}
			}
			require.NotZero(t, unread)
		})
	}
}

func TestCheck_ContinuesBehindADamagedMailbox(t *testing.T) {
	all := newActors(t, 5)
	file := fileOf(t, func(r *rig) {
		fillMailboxes(t, all)(r)
		node := r.node(Options{Exclusive: true, SweepEvery: -1}, false)
		_, err := repositorytest.Peek(t.Context(), r.stores(node), all[2], allGroups, domain.BundleID{}, repositorytest.OnRequest)
		require.NoError(t, err)
	})
	for name, text := range map[string]string{
		"head":       headOf(all[2]),
		"first head": headOf(all[0]),
		"last head":  headOf(all[4]),
		"page":       `"partitionKey":"actor-0002|TimeSeries|`,
		"gate":       `"recipient":"actor-0002"`,
	} {
		t.Run(name, func(t *testing.T) {
			r := flipBit(t, file, text)
			node := r.node(Options{Exclusive: true}, false)
			for _, repair := range []bool{false, true} {
				report, err := node.Check(t.Context(), CheckOptions{Repair: repair})
				require.NoError(t, err)
				require.Len(t, report.Findings, 1)
				f := report.Findings[0]
				require.Equal(t, unreadable, f.Kind)
				require.Contains(t, text+all[2].String(), f.Recipient)
				require.NotEmpty(t, f.Recipient)
				require.True(t, f.Damage)
				require.False(t, f.Repaired)
				require.Contains(t, f.Text, "the file is damaged")
				require.EqualValues(t, 3*4, report.Events, "those of all other recipients")
			}
		})
	}
}
