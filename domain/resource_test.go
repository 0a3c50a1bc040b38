package domain_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func parseBase(t *testing.T, text string) domain.ResourceBase {
	t.Helper()
	b, err := domain.ParseResourceBase(text)
	require.NoError(t, err)
	return b
}

var resourceActor = func() domain.ActorID {
	a, err := domain.ParseActorID("5790001330552")
	if err != nil {
		panic(err)
	}
	return a
}()

func TestAResource_HasOneForm(t *testing.T) {
	for text, uris := range map[string][]string{
		"https://hub.example.org":     {"https://hub.example.org/v1/resources/a.b", "HTTPS://HUB.example.org/v1/resources/a.b", "https://hub.example.org:443/v1/resources/%61%2Eb", "https://hub.example.org/v1/re%73ources/a%2eb"},
		"http://127.0.0.1:8080":       {"http://127.0.0.1:8080/v1/resources/a.b"},
		"http://[::1]:8080/":          {"http://[::1]:8080/v1/resources/a.b"},
		"http://[2001:DB8::1]":        {"http://[2001:db8::1]:80/v1/resources/a.b"},
		"https://example.org/hubs/1/": {"https://example.org/hubs/1/v1/resources/a.b"},
	} {
		b := parseBase(t, text)
		want, err := domain.Kept("a.b")
		require.NoError(t, err)
		for _, uri := range uris {
			r, err := b.Parse(uri, resourceActor)
			require.NoError(t, err, uri)
			require.Equal(t, want, r)
			again, err := b.Parse(b.URI(r), resourceActor)
			require.NoError(t, err)
			require.Equal(t, r, again)
		}
	}
}

func TestAnObject_IsOneResourceByTheIDOfAnyRow(t *testing.T) {
	b := parseBase(t, "https://hub.example.org")
	name, err := domain.ParseObjectName("bucket", "a key/é")
	require.NoError(t, err)
	want := domain.ObjectResourceOf(name)
	for _, id := range []string{"AQZidWNrZXQIYSBrZXkvw6k", "AQZidWNrZXQIYSBrZXkvw6kCCW1lc3NhZ2UtMQA", "AQZidWNrZXQIYSBrZXkvw6kBAQJ2MQQwMEU0"} {
		r, err := b.Parse("https://hub.example.org/v1/objects/"+id, resourceActor)
		require.NoError(t, err)
		require.Equal(t, want, r)
	}
	require.Equal(t, "https://hub.example.org/v1/objects/AQZidWNrZXQIYSBrZXkvw6k", b.URI(want))
	found, err := want.Object()
	require.NoError(t, err)
	require.Equal(t, name, found)
	parsed, err := domain.ParseResourceKey(want.Key())
	require.NoError(t, err)
	require.Equal(t, want, parsed)
	_, err = domain.ParseResourceKey("/v1/objects/AQZidWNrZXQIYSBrZXkvw6kBAQJ2MQQwMEU0")
	require.Equal(t, domain.Invalid, domain.KindOf(err), "stores use one key for an object")
	kept, err := domain.Kept("a")
	require.NoError(t, err)
	_, err = kept.Object()
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}

func TestAURIThatNamesNoResource_IsRefusedWithTheReason(t *testing.T) {
	const below = "https://hub.example.org/v1/resources/a"
	b := parseBase(t, "https://hub.example.org")
	for uri, why := range map[string]string{
		"":                                      "absolute",
		"/v1/resources/a":                       "absolute",
		"v1/resources/a":                        "absolute",
		"mailto:a@example.org":                  "absolute",
		"http://hub.example.org/v1/resources/a": "of this hub",
		"https://hub.example.org:8443/v1/resources/a":  "of this hub",
		"https://hub.example.org.evil/v1/resources/a":  "of this hub",
		"https://other.example.org/v1/resources/a":     "of this hub",
		"https://hub.example.org":                      "of this hub",
		"https://me:pw@hub.example.org/v1/resources/a": "credentials",
		below + "?x=1":  "query",
		below + "?":     "query",
		below + "#x":    "fragment",
		below + "#":     "fragment",
		below + "%2561": "twice",
		below + "%zz":   "URI",
		below + "%2Fb":  "slash",
		below + "/":     "A-Z",
		below + "/b":    "A-Z",
		"https://hub.example.org/v1%2Fresources/a": "slash",
		"https://hub.example.org/v1//resources/a":  "cannot be watched",
		"https://hub.example.org/v1/resources/":    "1 to 64",
		"https://hub.example.org/v1/resources/..":  "reserved in paths",
		"https://hub.example.org/v1/resources/%2e": "reserved in paths",
		"https://hub.example.org/v1/bundles/a":     "bundle id",
		"https://hub.example.org/v1/objects/AQ":    "object id",
		"https://hub.example.org/v1/objects/x/y":   "object id",
		"https://hub.example.org/v1/objects":       "objects of stores",
		"https://hub.example.org/v1/peek":          "cannot be watched",
		"https://hub.example.org/V1/resources/a":   "cannot be watched",
		below + strings.Repeat("a", 64):            "1 to 64",
		below + strings.Repeat("a", 3000):          "at most 2048",
	} {
		_, err := b.Parse(uri, resourceActor)
		require.ErrorContains(t, err, why, uri)
		require.Equal(t, domain.Invalid, domain.KindOf(err))
		require.NotContains(t, err.Error(), "pw")
	}
}

func TestABase_ContainsURLsBelowIt(t *testing.T) {
	b := parseBase(t, "https://example.org/hub")
	for uri, want := range map[string]bool{
		"https://example.org/hub": true, "http://EXAMPLE.org/hub/v1": true, "https://EXAMPLE.org/hub/v1": true, "https://example.org:443/hub": true,
		"https://example.org/hubs": false, "https://example.org/": false, "https://example.com/hub": false, "%": false,
	} {
		require.Equal(t, want, b.Contains(uri), uri)
	}
	for _, text := range []string{"", "hub", "ftp://example.org", "https://", "https://a:b@example.org", "https://example.org?x", "https://example.org/%41"} {
		_, err := domain.ParseResourceBase(text)
		require.Error(t, err, text)
	}
}

// FuzzResourceURI checks that a resource has exactly one URI, and that a server would find the same
// resource by this URI as by the parsed one.
func FuzzResourceURI(f *testing.F) {
	for _, seed := range []string{"https://hub.example.org/v1/resources/a", "https://hub.example.org/v1/resources/%61", "https://HUB.example.org:443/v1/resources/a%2e", "https://hub.example.org/v1/resources/%2561", "https://hub.example.org/v1/objects/AQZidWNrZXQIYSBrZXkvw6kCCW1lc3NhZ2UtMQA"} {
		f.Add(seed)
	}
	b, err := domain.ParseResourceBase("https://hub.example.org")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, uri string) {
		r, err := b.Parse(uri, resourceActor)
		if err != nil {
			require.Equal(t, domain.Invalid, domain.KindOf(err))
			return
		}
		again, err := b.Parse(b.URI(r), resourceActor)
		require.NoError(t, err)
		require.Equal(t, r, again)
		u, err := url.Parse(uri)
		require.NoError(t, err)
		if r.Kind() == domain.ObjectResource { // the id in an object's URI may be that of a row
			id, err := domain.ParseObjectID(strings.TrimPrefix(u.Path, "/v1/objects/"))
			require.NoError(t, err)
			require.Equal(t, domain.ObjectResourceOf(id.Name), r)
		} else {
			require.Equal(t, r.String(), u.Path)
		}
		parsed, err := domain.ParseResourceKey(r.Key())
		require.NoError(t, err)
		require.Equal(t, r, parsed)
	})
}

func TestABundle_BelongsToItsActor(t *testing.T) {
	b := parseBase(t, "https://hub.example.org")
	const uri = "https://hub.example.org/v1/bundles/0B9F4C5E-7a52-4d57-9d0c-3f1e6b8a2c41"
	mine, err := b.Parse(uri, resourceActor)
	require.NoError(t, err)
	other, err := domain.ParseActorID("other")
	require.NoError(t, err)
	theirs, err := b.Parse(uri, other)
	require.NoError(t, err)
	require.Equal(t, mine.String(), theirs.String())
	require.Equal(t, "/v1/bundles/0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", mine.String())
	require.NotEqual(t, mine.Stream(), theirs.Stream())
	again, err := domain.ParseResourceKey(mine.Key())
	require.NoError(t, err)
	require.Equal(t, mine, again)
	id, isBundle := again.Bundle()
	require.True(t, isBundle)
	require.Equal(t, mine, domain.BundleOf(resourceActor, id))
	for path, isOfActor := range map[string]bool{
		"/v1/subscriptions/0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41": true, "/broker/producer/p": false, "/broker/channel/c": false, "/broker/channel/c/consumer/k": false,
	} {
		r, err := b.Parse("https://hub.example.org"+path, resourceActor)
		require.NoError(t, err)
		require.Equal(t, path, r.String())
		require.Equal(t, isOfActor, r.Actor() == resourceActor)
		again, err := domain.ParseResourceKey(r.Key())
		require.NoError(t, err)
		require.Equal(t, r, again)
		if party, err := r.Party(); err == nil {
			require.Equal(t, r, domain.PartyOf(party))
		} else {
			require.True(t, isOfActor)
		}
	}
	for _, key := range []string{"", "/broker/channel/c#actor", "/broker/channel/c/consumer/", "/broker/channel/c/consumers/k", mine.String(), "/v1/resources/a#actor", mine.Key() + "#x", "/v1/resources/a#"} {
		_, err := domain.ParseResourceKey(key)
		require.Error(t, err, key)
	}
}
