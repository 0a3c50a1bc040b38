package hub_test

import (
	"context"
	"io"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
)

// uriOf returns the URI that an object in the exchange would have.
func (d *contentDomain) uriOf(name string) string {
	return strings.TrimSuffix(d.exchange.Upload("any", nil), "any") + name
}

func TestCopyContent_RefusesAnEventListOfTheHub(t *testing.T) {
	for what, change := range map[string]func(list string) string{
		"as it is":        func(list string) string { return list },
		"slashes escaped": url.PathEscape,
		"with a query":    func(list string) string { return list + "?sig=x" },
	} {
		t.Run(what, func(t *testing.T) {
			w, d := newContentWorld(t)
			d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
				return hub.Reply{URI: d.uriOf(change(r.List))}, nil
			}
			w.sendNew(3, charges)
			list := w.requireUnanswered("foreign-content").List
			r, err := d.exchange.Open(t.Context(), repository.Section{Object: list, Length: 48})
			require.NoError(t, err, "the list stays for the next try")
			require.NoError(t, r.Close())
		})
	}
}

func TestCopyContent_DeletesOnlyObjectsNamedAfterTheBundle(t *testing.T) {
	for what, tc := range map[string]struct {
		name    func(process string) string
		removed bool
	}{
		"as the original's domains name it": {func(process string) string { return process + "_data" }, true},
		"the process id alone":              {func(process string) string { return process }, true},
		"in a folder":                       {func(process string) string { return "out/" + process + ".xml" }, true},
		"another name":                      {func(string) string { return "prices-of-march.xml" }, false},
		"a folder of that name":             {func(process string) string { return process + "_data/x" }, false},
		"of an actor with a longer id":      {func(process string) string { return process + "7_data" }, false},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, d := newContentWorld(t)
				defer w.hub.Close()
				var left string
				d.answer = func(_ context.Context, _ int, r hub.ContentRequest) (hub.Reply, error) {
					left = d.exchange.Upload(tc.name(hub.ProcessID(r.Bundle, r.Recipient)), []byte("content"))
					return hub.Reply{URI: left}, nil
				}
				w.sendNew(1, charges)
				require.Equal(t, "content", w.body(w.peekBundle()))
				synctest.Wait() // wait until the hub has cleaned up in the background
				r, err := d.exchange.Fetch(t.Context(), left)
				if tc.removed {
					require.Equal(t, domain.NotFound, domain.KindOf(err))
					return
				}
				require.NoError(t, err, "it may be anybody's")
				content, err := io.ReadAll(r)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				require.Equal(t, "content", string(content))
			})
		})
	}
}
