package domain_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestAnInvalidSubscription_IsRefusedWithAJSONPointer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*domain.Subscription)
		want   string // expected error; "": no error
	}{
		{"as it is", func(*domain.Subscription) {}, ""},
		{"by PUT", func(s *domain.Subscription) { s.Method = "PUT" }, ""},
		{"a form", func(s *domain.Subscription) {
			s.Encoding, s.FormFields = domain.FormEncoding, map[string]string{"a": "b"}
		}, ""},
		{"no URL", func(s *domain.Subscription) { s.CallbackURL = "" }, "/callback_url: want http or https"},
		{"relative", func(s *domain.Subscription) { s.CallbackURL = "/hook" }, "/callback_url: want http or https"},
		{"another scheme", func(s *domain.Subscription) { s.CallbackURL = "ftp://example.org" }, "/callback_url: want http or https"},
		{"no host", func(s *domain.Subscription) { s.CallbackURL = "https://:443/" }, "/callback_url: want a host"},
		{"no URL at all", func(s *domain.Subscription) { s.CallbackURL = "http://a b" }, "/callback_url: want a URL"},
		{"credentials", func(s *domain.Subscription) { s.CallbackURL = "https://me:secret@example.org" }, "/callback_url: want no credentials in it"},
		{"a fragment", func(s *domain.Subscription) { s.CallbackURL = "https://example.org#x" }, "/callback_url: want no fragment"},
		{"a long URL", func(s *domain.Subscription) { s.CallbackURL += strings.Repeat("x", domain.MaxCallbackURL) }, "/callback_url: want at most"},
		{"an invalid topic", func(s *domain.Subscription) { s.Topic = "a b" }, "/topic: "},
		{"another method", func(s *domain.Subscription) { s.Method = "GET" }, "/method: want POST or PUT"},
		{"another encoding", func(s *domain.Subscription) { s.Encoding = "text/plain" }, "/encoding: want"},
		{"fields without a form", func(s *domain.Subscription) { s.FormFields = map[string]string{"a": "b"} }, "/form_fields: only"},
		{"a field with the name of the payload field", func(s *domain.Subscription) {
			s.Encoding, s.FormFields = domain.FormEncoding, map[string]string{"payload": "b"}
		}, "/form_fields/payload: "},
		{"a field without a name", func(s *domain.Subscription) {
			s.Encoding, s.FormFields = domain.FormEncoding, map[string]string{"": "b"}
		}, "/form_fields/: want a name"},
		{"a long filter", func(s *domain.Subscription) { s.Filter = strings.Repeat("a", domain.MaxExpression+1) }, "/jmespath_query: want at most"},
		{"a reserved attachment", func(s *domain.Subscription) { s.Attachments = map[string]string{"_errors": "a"} }, "/attachments/_errors: want a name"},
		{"an attachment without expression", func(s *domain.Subscription) { s.Attachments = map[string]string{"a/b": ""} }, "/attachments/a~1b/expression: want"},
		{"sync for a topic of the hub", func(s *domain.Subscription) { s.IsSync, s.Topic = true, domain.DataTopic }, "/delivery: want async"},
		{"sync", func(s *domain.Subscription) { s.IsSync, s.MaxRate, s.MaxConcurrency = true, domain.MinCallRate, 1 }, ""},
		{"the highest limits", func(s *domain.Subscription) {
			s.MaxRate, s.MaxConcurrency = domain.MaxCallRate, domain.MaxConcurrency
		}, ""},
		{"a low rate", func(s *domain.Subscription) { s.MaxRate = domain.MinCallRate / 2 }, "/max_rate: want 0.01 to 1000 calls"},
		{"a high rate", func(s *domain.Subscription) { s.MaxRate = domain.MaxCallRate + 1 }, "/max_rate: want"},
		{"a rate that is not a number", func(s *domain.Subscription) { s.MaxRate = math.NaN() }, "/max_rate: want"},
		{"high concurrency", func(s *domain.Subscription) { s.MaxConcurrency = domain.MaxConcurrency + 1 }, "/max_concurrency: want 1 to 64"},
		{"ordered", func(s *domain.Subscription) { s.IsOrdered, s.MaxConcurrency = true, 1 }, ""},
		{"ordered, with concurrent calls", func(s *domain.Subscription) { s.IsOrdered, s.MaxConcurrency = true, 2 }, "/max_concurrency: want 1, or none"},
		{"negative concurrency", func(s *domain.Subscription) { s.MaxConcurrency = -1 }, "/max_concurrency: want"},
		{"a key id with a line break", func(s *domain.Subscription) { s.HMACKeyID = "a\r\nb" }, "/hmac_key_id: want no control characters"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := domain.Subscription{Owner: actor("a"), CallbackURL: "https://example.org/hook"}
			s.SetDefaults()
			tc.change(&s)
			err := s.Check()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, domain.Invalid, domain.KindOf(err))
			require.True(t, strings.HasPrefix(err.Error(), tc.want), err.Error())
			require.NotContains(t, err.Error(), "secret")
		})
	}
}

// If IsEqual ignored a field, a request that changes only this field would count as a repeated
// request.
func TestTwoSubscriptions_AreEqualInAllMembers(t *testing.T) {
	s := domain.Subscription{Owner: actor("a"), FormFields: map[string]string{"a": "b"}, Attachments: map[string]string{"a": "b"}}
	same := s.Clone()
	require.True(t, s.IsEqual(&same))
	changes := []func(*domain.Subscription){
		func(s *domain.Subscription) { s.Owner = actor("b") },
		func(s *domain.Subscription) { s.Topic = "x" },
		func(s *domain.Subscription) { s.CallbackURL = "x" },
		func(s *domain.Subscription) { s.Method = "x" },
		func(s *domain.Subscription) { s.Encoding = "x" },
		func(s *domain.Subscription) { s.FormFields["a"] = "x" },
		func(s *domain.Subscription) { s.PayloadFormField = "x" },
		func(s *domain.Subscription) { s.HMACKeyID = "x" },
		func(s *domain.Subscription) { s.Filter = "x" },
		func(s *domain.Subscription) { s.Attachments["a"] = "x" },
		func(s *domain.Subscription) { s.IsSync = true },
		func(s *domain.Subscription) { s.MaxRate = 1 },
		func(s *domain.Subscription) { s.MaxConcurrency = 1 },
		func(s *domain.Subscription) { s.IsOrdered = true },
	}
	require.Len(t, changes, reflect.TypeFor[domain.Subscription]().NumField())
	for i, change := range changes {
		other := s.Clone()
		change(&other)
		require.False(t, s.IsEqual(&other), "change %d", i)
		require.True(t, s.IsEqual(&same), "Clone shares nothing")
	}
}

func TestASubscriptionID_IsAUUIDAndNamesACursor(t *testing.T) {
	id, err := domain.ParseSubscriptionID("0B9F4C5E-7A52-4D57-9D0C-3F1E6B8A2C41")
	require.NoError(t, err)
	require.Equal(t, "0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41", id.String())
	cursor, err := domain.ParseCursorID(id.Cursor().String())
	require.NoError(t, err)
	require.Equal(t, id.Cursor(), cursor)
	again, err := domain.SubscriptionOf(cursor)
	require.NoError(t, err)
	require.Equal(t, id, again)
	for _, other := range []string{"c|channel|consumer", "s|mine"} {
		cursor, err := domain.ParseCursorID(other)
		require.NoError(t, err)
		_, err = domain.SubscriptionOf(cursor)
		require.Equal(t, domain.Invalid, domain.KindOf(err), other)
	}
	_, err = domain.ParseSubscriptionID("mine")
	require.Equal(t, domain.Invalid, domain.KindOf(err))
}
