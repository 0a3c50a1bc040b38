package repositorytest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// RunContent checks an implementation against the contract of Content.
func RunContent(t *testing.T, open func(t *testing.T) repository.Content) {
	for _, r := range contentRules {
		t.Run(r.name, func(t *testing.T) {
			r.test(&fixture{T: t, Stores: Stores{Content: open(t)}, ctx: t.Context(), actor: NewActor()})
		})
	}
}

var contentRules = []contractRule{
	{name: "an object is read whole and in sections", test: func(f *fixture) {
		name := f.objectName("object")
		f.putObject(name, "0123456789")
		for _, tc := range []struct {
			offset, length int64
			want           string
		}{
			{0, 10, "0123456789"}, {0, 1, "0"}, {3, 4, "3456"}, {9, 1, "9"}, {4, 0, ""}, {10, 0, ""},
		} {
			require.Equal(f, tc.want, f.readPayload(repository.Section{Object: name, Offset: tc.offset, Length: tc.length}))
		}
	}},

	{name: "an object may be empty", test: func(f *fixture) {
		name := f.objectName("empty")
		f.putObject(name, "")
		require.Empty(f, f.readPayload(repository.Section{Object: name}))
	}},

	{name: "an object of some megabytes is read byte for byte", test: func(f *fixture) {
		data := make([]byte, 3<<20)
		_, _ = rand.NewChaCha8([32]byte{}).Read(data) // cannot fail, according to its documentation
		want := string(data)
		name := f.objectName("big")
		require.NoError(f, f.Content.Put(f.ctx, name, iotest.HalfReader(strings.NewReader(want))))
		require.True(f, want == f.readPayload(repository.Section{Object: name, Length: int64(len(want))}))
		require.Equal(f, want[2_000_000:2_000_100], f.readPayload(repository.Section{Object: name, Offset: 2_000_000, Length: 100}))
	}},

	{name: "an object is written once", test: func(f *fixture) {
		name := f.objectName("once")
		f.putObject(name, "first")
		for _, again := range []string{"second", "first", ""} {
			f.wantRefusal(domain.Conflict, f.Content.Put(f.ctx, name, strings.NewReader(again)))
		}
		require.Equal(f, "first", f.readPayload(repository.Section{Object: name, Length: 5}))
	}},

	{name: "of concurrent Puts one wins, whole", test: func(f *fixture) {
		name := f.objectName("race")
		var won atomic.Int64
		winner := make(chan string, 6)
		f.runTogether(6, func(i int) error {
			data := strings.Repeat(fmt.Sprint(i), 100_000)
			err := f.Content.Put(f.ctx, name, strings.NewReader(data))
			switch domain.KindOf(err) {
			case domain.Conflict:
				return nil
			default:
				won.Add(1)
				winner <- data
				return err
			}
		})
		require.Equal(f, int64(1), won.Load())
		require.True(f, <-winner == f.readPayload(repository.Section{Object: name, Length: 100_000}))
	}},

	{name: "objects are put, read and deleted concurrently", test: func(f *fixture) {
		f.runTogether(8, func(i int) error {
			for n := range 5 {
				name := f.objectName(fmt.Sprintf("shared/%d/%d", n, i))
				if err := f.Content.Put(f.ctx, name, strings.NewReader(name)); err != nil {
					return err
				}
				r, err := f.Content.Open(f.ctx, repository.Section{Object: name, Length: int64(len(name))})
				if err != nil {
					return err
				}
				data, err := io.ReadAll(r)
				if err := errors.Join(err, r.Close(), f.Content.Delete(f.ctx, name)); err != nil || string(data) != name {
					return errors.Join(err, fmt.Errorf("%s holds %q", name, data))
				}
			}
			return nil
		})
	}},

	{name: "nothing of a failed Put is visible, and its name stays free", test: func(f *fixture) {
		name := f.objectName("failed")
		broken := errors.New("the source broke")
		err := f.Content.Put(f.ctx, name, io.MultiReader(strings.NewReader(strings.Repeat("x", 200_000)), iotest.ErrReader(broken)))
		require.ErrorIs(f, err, broken)
		f.wantMissing(name)
		f.putObject(name, "whole")
		require.Equal(f, "whole", f.readPayload(repository.Section{Object: name, Length: 5}))
	}},

	{name: "a source that fails has not reached its end", test: func(f *fixture) {
		for i, cause := range []error{io.ErrUnexpectedEOF, fmt.Errorf("the connection was closed: %w", io.EOF)} {
			for _, size := range []int{5, 4<<20 + 5} {
				name := f.objectName(fmt.Sprintf("broken-off/%d/%d", i, size))
				source := io.MultiReader(strings.NewReader(strings.Repeat("x", size)), iotest.ErrReader(cause))
				require.ErrorIs(f, f.Content.Put(f.ctx, name, source), cause)
				f.wantMissing(name)
			}
		}
	}},

	{name: "the kind of a source's error is kept", test: func(f *fixture) {
		tooBig := domain.Errorf(domain.Invalid, "payload: too big")
		f.wantRefusal(domain.Invalid, f.Content.Put(f.ctx, f.objectName("too-big"), iotest.ErrReader(tooBig)))
	}},

	{name: "a Put ends with its context, and nothing of it is visible", test: func(f *fixture) {
		ctx, cancel := context.WithCancel(f.ctx)
		name := f.objectName("cancelled")
		err := f.Content.Put(ctx, name, &endlessReader{after: 5, do: cancel})
		require.ErrorIs(f, err, context.Canceled)
		f.wantMissing(name)
		f.putObject(name, "whole")
	}},

	{name: "with an ended context nothing is read, written or deleted", test: func(f *fixture) {
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		there, absent := f.objectName("there"), f.objectName("absent")
		f.putObject(there, "x")
		_, err := f.Content.Open(ended, repository.Section{Object: there, Length: 1})
		require.ErrorIs(f, err, context.Canceled)
		require.ErrorIs(f, f.Content.Delete(ended, there), context.Canceled)
		require.ErrorIs(f, f.Content.Put(ended, absent, strings.NewReader("x")), context.Canceled)
		require.Equal(f, "x", f.readPayload(repository.Section{Object: there, Length: 1}))
		f.wantMissing(absent)
	}},

	{name: "a missing object is NotFound", test: func(f *fixture) {
		f.putObject(f.objectName("a/b"), "x")
		f.wantMissing(f.objectName("other"))
		f.wantMissing(f.objectName("a"))
		f.wantMissing(f.objectName("a/b/c"))
	}},

	{name: "an object that is too short is Damaged", test: func(f *fixture) {
		name := f.objectName("short")
		f.putObject(name, "0123456789")
		for _, s := range [][2]int64{{0, 11}, {10, 1}, {11, 0}, {5, 1 << 62}, {1<<63 - 1, 1}, {1<<63 - 1, 1<<63 - 1}} {
			_, err := f.Content.Open(f.ctx, repository.Section{Object: name, Offset: s[0], Length: s[1]})
			f.wantRefusal(domain.Damaged, err)
		}
	}},

	{name: "a deleted object is gone, and its name is free", test: func(f *fixture) {
		name := f.objectName("deleted")
		f.putObject(name, "old")
		f.putObject(name+"-not", "stays")
		require.NoError(f, f.Content.Delete(f.ctx, name))
		f.wantMissing(name)
		f.putObject(name, "new")
		require.Equal(f, "new", f.readPayload(repository.Section{Object: name, Length: 3}))
		require.Equal(f, "stays", f.readPayload(repository.Section{Object: name + "-not", Length: 5}))
	}},

	{name: "to delete a missing object is no error", test: func(f *fixture) {
		name := f.objectName("never")
		require.NoError(f, f.Content.Delete(f.ctx, name))
		require.NoError(f, f.Content.Delete(f.ctx, name+"/below"))
	}},

	{name: "a deleted folder is deleted with its objects, and their names are free", test: func(f *fixture) {
		folder := f.objectName("folder")
		in := []string{folder + "/a", folder + "/b/c", folder + "/" + strings.Repeat("x", 250)}
		out := []string{folder, folder + "-not/a", f.objectName("folders/a")}
		for range 2 {
			for _, name := range in {
				f.putObject(name, "goes")
			}
			for _, name := range out {
				_ = f.Content.Put(f.ctx, name, strings.NewReader("stays"))
			}
			require.NoError(f, f.Content.DeleteFolder(f.ctx, folder))
			for _, name := range in {
				f.wantMissing(name)
			}
			for _, name := range out {
				require.Equal(f, "stays", f.readPayload(repository.Section{Object: name, Length: 5}))
			}
		}
		require.NoError(f, f.Content.DeleteFolder(f.ctx, folder), "a second time")
		ended, cancel := context.WithCancel(f.ctx)
		cancel()
		require.ErrorIs(f, f.Content.DeleteFolder(ended, f.objectName("folders")), context.Canceled)
	}},

	{name: "all valid names are different objects", test: func(f *fixture) {
		prefix := f.objectName("")
		names := []string{
			"a", "a/b", "a/b/c", "a.b", "...", ".a", "a.", "-", "_", "..a/...", "0", "tmp", "unfinished", "try",
			"A-Za-z0-9._-/x", strings.Repeat("s/", 100) + "s",
			strings.Repeat("x", 512-len(prefix)), strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("x", 200) + "/x",
		}
		for _, n := range names {
			f.putObject(prefix+n, n)
		}
		for _, n := range names {
			require.Equal(f, n, f.readPayload(repository.Section{Object: prefix + n, Length: int64(len(n))}))
			require.NoError(f, f.Content.Delete(f.ctx, prefix+n))
			f.wantMissing(prefix + n)
		}
	}},

	{name: "an invalid name is Invalid", test: func(f *fixture) {
		for _, n := range []string{
			"", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../b", "./a", "a/./b", "/etc/passwd",
			`a\b`, `..\a`, "a b", "a\x00b", "a\nb", "a\n", "æ", "a=", "a+", "a:b", "a?b", "a%2fb", "a*", "~", strings.Repeat("x", 513),
		} {
			f.wantRefusal(domain.Invalid, f.Content.Put(f.ctx, n, strings.NewReader("x")))
			f.wantRefusal(domain.Invalid, f.Content.Delete(f.ctx, n))
			f.wantRefusal(domain.Invalid, f.Content.DeleteFolder(f.ctx, n))
			_, err := f.Content.Open(f.ctx, repository.Section{Object: n, Length: 1})
			f.wantRefusal(domain.Invalid, err)
		}
	}},
}

// objectName returns an object name that only this case uses.
func (f *fixture) objectName(s string) string { return f.actor.String() + "/" + s }

func (f *fixture) putObject(name, data string) {
	f.Helper()
	require.NoError(f, f.Content.Put(f.ctx, name, strings.NewReader(data)))
}

func (f *fixture) wantMissing(name string) {
	f.Helper()
	_, err := f.Content.Open(f.ctx, repository.Section{Object: name})
	f.wantRefusal(domain.NotFound, err)
}

// An endlessReader yields data without end, and calls do at one of the reads.
type endlessReader struct {
	reads, after int
	do           func()
}

func (e *endlessReader) Read(p []byte) (int, error) {
	if e.reads++; e.reads == e.after {
		e.do()
	}
	return copy(p, "data without end"), nil
}
