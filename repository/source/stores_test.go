package source_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/source"
)

// A pageStore returns its pages in order, one for each call of List.
type pageStore struct {
	repository.Source
	pages []repository.SourcePage
}

func (s *pageStore) List(context.Context, string, string, string, int) (page repository.SourcePage, err error) {
	page, s.pages = s.pages[0], s.pages[1:]
	return page, nil
}

func page(cursor string, keys ...string) repository.SourcePage {
	p := repository.SourcePage{Cursor: cursor}
	for _, key := range keys {
		p.Objects = append(p.Objects, repository.SourceObject{Key: key})
	}
	return p
}

func TestListingOutOfOrderIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pages []repository.SourcePage
		want  int // number of pages before the failure
	}{
		{"in order", []repository.SourcePage{page("1", "p/a", "p/b"), page("2"), page("3", "p/c"), page("")}, 4},
		{"within a page", []repository.SourcePage{page("", "p/b", "p/a")}, 0},
		{"a key twice", []repository.SourcePage{page("", "p/b", "p/b")}, 0},
		{"between pages", []repository.SourcePage{page("1", "p/b"), page("", "p/a")}, 1},
		{"a page that is repeated", []repository.SourcePage{page("1", "p/a", "p/b"), page("1", "p/a", "p/b")}, 1},
		{"the last key again", []repository.SourcePage{page("1", "p/a"), page("", "p/a")}, 1},
		{"an empty page that is repeated", []repository.SourcePage{page("1", "p/a"), page("1")}, 1},
		{"another prefix", []repository.SourcePage{page("", "q")}, 0},
		{"more than asked for", []repository.SourcePage{page("", "p/a", "p/b", "p/c")}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stores := source.Stores{{Buckets: "b", Source: &pageStore{pages: tc.pages}}}
			cursor := ""
			for range tc.want {
				got, err := stores.List(t.Context(), "b", "p/", cursor, 2)
				require.NoError(t, err)
				cursor = got.Cursor
			}
			if tc.want < len(tc.pages) {
				_, err := stores.List(t.Context(), "b", "p/", cursor, 2)
				require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
			}
		})
	}
}

func TestABucketHasTheFirstStoreThatFits(t *testing.T) {
	one := func(key string) *pageStore { return &pageStore{pages: []repository.SourcePage{page("", key)}} }
	stores := source.Stores{{Buckets: "exact", Source: one("a")}, {Buckets: "account/*", Source: one("b")}, {Buckets: "account/other", Source: one("c")}}
	for bucket, want := range map[string]string{"exact": "a", "account/other": "b"} {
		got, err := stores.List(t.Context(), bucket, "", "", 1)
		require.NoError(t, err)
		require.Equal(t, want, got.Objects[0].Key)
	}
	for _, bucket := range []string{"exact2", "account", ""} {
		_, err := stores.List(t.Context(), bucket, "", "", 1)
		require.ErrorIs(t, err, repository.ErrNoStore)
		name, err := domain.ParseObjectName(bucket+"x", "k")
		require.NoError(t, err)
		_, err = stores.Stat(t.Context(), name, nil)
		require.ErrorIs(t, err, repository.ErrNoStore)
		_, err = stores.Link(t.Context(), name, domain.VersionID{}, repository.LinkOptions{Expires: time.Hour})
		require.ErrorIs(t, err, repository.ErrNoStore)
		_, err = stores.Open(t.Context(), name)
		require.ErrorIs(t, err, repository.ErrNoStore)
	}
}

func TestList_RefusesAForeignCursor(t *testing.T) {
	stores := source.Stores{{Buckets: "b", Source: &pageStore{}}}
	for _, cursor := range []string{"%", "bm9uZQ", "1"} {
		_, err := stores.List(t.Context(), "b", "", cursor, 1)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
	}
	_, err := stores.List(t.Context(), "b", "", "", 0)
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}

// A slowStore never responds.
type slowStore struct{ repository.Source }

func (slowStore) Stat(ctx context.Context, _ domain.ObjectName, _ *domain.VersionID) (repository.SourceObject, error) {
	<-ctx.Done()
	return repository.SourceObject{}, ctx.Err()
}

func TestAStoreThatDoesNotAnswerIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := source.Stores{{Buckets: "*", Source: slowStore{}}}
		name, err := domain.ParseObjectName("b", "k")
		require.NoError(t, err)
		began := time.Now()
		_, err = stores.Stat(t.Context(), name, nil)
		require.Equal(t, domain.Unavailable, domain.KindOf(err))
		require.Equal(t, time.Minute, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = stores.Stat(ctx, name, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func (slowStore) Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error) {
	if name.Key() == "k" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &slowContent{ctx: ctx}, nil
}

// A slowContent sends a byte every 40 seconds, and nothing after 5 bytes.
type slowContent struct {
	ctx  context.Context //nolint:containedctx // the context of Open
	sent int
}

func (c *slowContent) Read(p []byte) (int, error) {
	if c.sent++; c.sent > 5 {
		<-c.ctx.Done()
		return 0, c.ctx.Err()
	}
	<-time.After(40 * time.Second) // in simulated time
	p[0] = 'x'
	return 1, nil
}

func (*slowContent) Close() error { return nil }

// A reader of content may take any time, as long as the store sends data. If the store sends nothing for
// the time limit, Read fails with Unavailable.
func TestContentThatStalls_IsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stores := source.Stores{{Buckets: "*", Source: slowStore{}}}
		open := func(ctx context.Context, key string) (io.ReadCloser, error) {
			name, err := domain.ParseObjectName("b", key)
			require.NoError(t, err)
			return stores.Open(ctx, name)
		}
		began := time.Now()
		_, err := open(t.Context(), "k")
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.Equal(t, time.Minute, time.Since(began))
		content, err := open(t.Context(), "slow")
		require.NoError(t, err)
		began = time.Now()
		text, err := io.ReadAll(content)
		require.Equal(t, domain.Unavailable, domain.KindOf(err), "%v", err)
		require.Equal(t, "xxxxx", string(text))
		require.Equal(t, 5*40*time.Second+time.Minute, time.Since(began))
		require.NoError(t, content.Close())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = open(ctx, "k")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
