package repositorytest

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A Shared is an exchange under test, with the access that domains have to it.
type Shared struct {
	Exchange repository.Exchange

	// Upload stores data as a domain does, and returns the URI that the domain would send. It replaces an
	// object of the same name.
	Upload func(t testing.TB, name string, data []byte) (uri string)
}

// RunExchange checks an implementation against the contracts of Exchange and Content.
func RunExchange(t *testing.T, open func(t *testing.T) Shared) {
	RunContent(t, func(t *testing.T) repository.Content { return open(t).Exchange })
	for _, r := range exchangeRules {
		t.Run(r.name, func(t *testing.T) {
			f := &fixture{T: t, ctx: t.Context(), actor: NewActor()}
			r.test(f, open(t))
		})
	}
}

type exchangeRule struct {
	name string
	test func(*fixture, Shared)
}

var exchangeRules = []exchangeRule{
	{"an object of a domain is fetched by its URI", func(f *fixture, s Shared) {
		for name, data := range map[string]string{
			"plain": "0123456789", "empty": "", "below/a/folder": "x",
			"a name with blanks, æøå, 100% & what+not #1?.xml": "y", "big": strings.Repeat("0123456789", 300_000),
		} {
			uri := s.Upload(f, f.objectName(name), []byte(data))
			known, err := s.Exchange.Name(uri + "?sig=SECRET")
			require.NoError(f, err)
			require.Equal(f, f.objectName(name), known)
			require.True(f, data == f.fetchURI(s, uri), name)
			require.True(f, data == f.fetchURI(s, uri+"?sv=2024-11-04&sig=SECRET%2Bx&sp=r"), "what comes after the name is not looked at")
		}
	}},

	{"domains find an object of the hub by its name", func(f *fixture, s Shared) {
		name := f.objectName("list")
		uri := s.Upload(f, name, []byte("in the way"))
		f.wantRefusal(domain.Conflict, s.Exchange.Put(f.ctx, name, strings.NewReader("ids")))
		require.NoError(f, s.Exchange.Discard(f.ctx, uri))
		require.NoError(f, s.Exchange.Put(f.ctx, name, strings.NewReader("ids")))
		require.Equal(f, "ids", f.fetchURI(s, uri))
	}},

	{"a missing object is NotFound, and can be discarded", func(f *fixture, s Shared) {
		uri := s.Upload(f, f.objectName("gone"), []byte("x"))
		for range 2 {
			require.NoError(f, s.Exchange.Discard(f.ctx, uri))
			_, err := s.Exchange.Fetch(f.ctx, uri)
			f.wantRefusal(domain.NotFound, err)
		}
	}},

	{"a foreign or malformed URI is Invalid, and its secrets are not shown", func(f *fixture, s Shared) {
		name := f.objectName("here")
		uri := strings.ReplaceAll(s.Upload(f, name, []byte("x")), "%2F", "/")
		require.True(f, strings.HasSuffix(uri, "/"+name), uri)
		for _, tc := range []struct{ what, uri string }{
			{"nothing", ""},
			{"no URI", "://"},
			{"a name alone", name},
			{"a path alone", changeURI(f, uri, func(u *url.URL) { u.Scheme, u.Host = "", "" })},
			{"another scheme", changeURI(f, uri, func(u *url.URL) { u.Scheme = "ftp" })},
			{"another host", changeURI(f, uri, func(u *url.URL) { u.Host = "example.org" })},
			{"another port", changeURI(f, uri, func(u *url.URL) { u.Host = u.Hostname() + ":1" })},
			{"a host that only begins alike", changeURI(f, uri, func(u *url.URL) { u.Host = u.Hostname() + ".example.org" })},
			{"a user", changeURI(f, uri, func(u *url.URL) { u.User = url.UserPassword("SECRET", "SECRET") })},
			{"the host as a user", changeURI(f, uri, func(u *url.URL) { u.User = url.User(u.Host); u.Host = "example.org" })},
			{"a fragment", uri + "#SECRET"},
			{"no name", strings.TrimSuffix(uri, name)},
			{"no name and no slash", strings.TrimSuffix(uri, "/"+name)},
			{"another container", strings.TrimSuffix(uri, "/"+name) + "s/" + name},
			{"a way up", strings.Replace(uri, name, "../"+name, 1)},
			{"a way up, escaped", strings.Replace(uri, name, "%2e%2e/"+name, 1)},
			{"a way up, all escaped", strings.Replace(uri, name, "%2E%2E%2F"+name, 1)},
			{"a way round", strings.Replace(uri, name, "x/../"+name, 1)},
			{"a way here", strings.Replace(uri, name, "./"+name, 1)},
			{"a double slash", strings.Replace(uri, name, "/"+name, 1)},
			{"a double slash, escaped", strings.Replace(uri, name, "%2F"+name, 1)},
			{"a slash at the end", uri + "/"},
			{"half an escape", uri + "%2"},
		} {
			_, err := s.Exchange.Fetch(f.ctx, tc.uri)
			require.Equal(f, domain.Invalid, domain.KindOf(err), "%s: %v", tc.what, err)
			require.NotContains(f, err.Error(), "SECRET", tc.what)
			require.Equal(f, domain.Invalid, domain.KindOf(s.Exchange.Discard(f.ctx, tc.uri)), tc.what)
			_, err = s.Exchange.Name(tc.uri)
			require.Equal(f, domain.Invalid, domain.KindOf(err), "%s: %v", tc.what, err)
			require.NotContains(f, err.Error(), "SECRET", tc.what)
			if tc.uri != "" {
				_, err = s.Exchange.Fetch(f.ctx, tc.uri+"?sig=SECRET")
				require.NotContains(f, err.Error(), "SECRET", tc.what)
			}
		}
		require.Equal(f, "x", f.fetchURI(s, uri), "nothing has happened to it")
	}},

	{"of an object that changes meanwhile, one version is read, or none", func(f *fixture, s Shared) {
		before, after := strings.Repeat("before", 1<<18), strings.Repeat("after", 1<<18)
		for what, change := range map[string]func(name, uri string){
			"overwritten": func(name, _ string) { s.Upload(f, name, []byte(after)) },
			"removed":     func(_, uri string) { require.NoError(f, s.Exchange.Discard(f.ctx, uri)) },
		} {
			uri := s.Upload(f, f.objectName(what), []byte(before))
			r, err := s.Exchange.Fetch(f.ctx, uri)
			require.NoError(f, err)
			head := make([]byte, 10)
			_, err = io.ReadFull(r, head)
			require.NoError(f, err)
			change(f.objectName(what), uri)
			rest, err := io.ReadAll(r)
			require.NoError(f, r.Close())
			if err != nil {
				f.wantRefusal(domain.Damaged, err)
				continue
			}
			require.True(f, before == string(head)+string(rest), what)
		}
	}},

	{"a fetched object is read to its end though the context of Fetch has ended", func(f *fixture, s Shared) {
		data := strings.Repeat("0123456789", 300_000)
		uri := s.Upload(f, f.objectName("long"), []byte(data))
		ctx, cancel := context.WithCancel(f.ctx)
		r, err := s.Exchange.Fetch(ctx, uri)
		cancel()
		require.NoError(f, err)
		got, err := io.ReadAll(r)
		require.NoError(f, errors.Join(err, r.Close()))
		require.True(f, data == string(got))

		_, err = s.Exchange.Fetch(ctx, uri)
		require.ErrorIs(f, err, ctx.Err())
		require.ErrorIs(f, s.Exchange.Discard(ctx, uri), ctx.Err())
	}},
}

func (f *fixture) fetchURI(s Shared, uri string) string {
	f.Helper()
	r, err := s.Exchange.Fetch(f.ctx, uri)
	require.NoError(f, err)
	data, err := io.ReadAll(r)
	require.NoError(f, errors.Join(err, r.Close()))
	return string(data)
}

// changeURI returns a changed copy of uri.
func changeURI(f *fixture, uri string, change func(*url.URL)) string {
	f.Helper()
	u, err := url.Parse(uri)
	require.NoError(f, err)
	change(u)
	return u.String()
}
