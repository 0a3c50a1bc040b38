package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
)

func TestOriginal_ReadsAGUIDInAnyForm(t *testing.T) {
	const want = "0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9"
	f := serve(t)
	f.post(202, newEvent(1))
	for _, form := range []string{
		want, strings.ToUpper(want), " " + want + " ", strings.ReplaceAll(want, "-", ""), "{" + want + "}", "(" + want + ")",
		"{0x0A1B2C3D,0x4e5f,0x4071,{0x82,0x93,0xa4,0xb5,0xc6,0xd7,0xe8,0xf9}}",
		"{0xA1B2C3D, 0x4e5f, 0x4071, {0x82, 0x93, 0xa4, 0xb5, 0xc6, 0xd7, 0xe8, 0xf9}}",
	} {
		t.Run(form, func(t *testing.T) {
			path := "/api/peek?bundleId=" + strings.NewReplacer(" ", "%20", "{", "%7B", "}", "%7D").Replace(form)
			require.Equal(t, want, f.do("GET", path, "").wants(200).header.Get("MessageId"))
		})
	}
	for _, form := range []string{
		"4711", want[:35], want + "0", want[:35] + "X", "00000000-0000-0000-0000-000000000000", "{" + want, want + "}", "(" + want + "%7D", "(%7B" + want + "%7D)",
		"{{" + want + "%7D%7D", "%7B0x0,0x0,0x0,%7B0x0,0x0%7D%7D", strings.Repeat("a", 5000), "%zz", "'; DROP TABLE bundles",
	} {
		t.Run("not "+form[:min(40, len(form))], func(t *testing.T) {
			path := "bundleId=" + strings.NewReplacer(" ", "%20", "{", "%7B", "}", "%7D").Replace(form)
			const want = `{"error":{"code":"VALIDATION_EXCEPTION","message":"See details","details":[{"code":"invalid_UUID","message":"'Bundle Id' must have a valid guid.","target":"BundleId"}]}}`
			require.Equal(t, want, f.do("GET", "/api/peek?"+path, "").wants(400).body)
			require.Equal(t, want, f.do("DELETE", "/api/dequeue?"+path, "").wants(400).body)
		})
	}
}

func TestOriginal_ReadsTheFormat(t *testing.T) {
	for _, tc := range []struct {
		query, accept string
		want          string
	}{
		{"", "", "xml"},
		{"", "*/*", "xml"},
		{"", "application/json", "json"},
		{"", "text/html, application/json", "json"},
		{"", "application/json;q=0.9", "xml"},
		{"", "application/xml", "xml"},
		{"responseformat=json", "", "json"},
		{"responseformat=JSON", "application/xml", "json"},
		{"ResponseFormat=Xml", "application/json", "xml"},
		{"responseformat=1", "", "json"},
		{"responseformat=0", "application/json", "xml"},
		{"responseformat=7", "application/json", "xml"},
		{"responseformat=-1", "application/json", "xml"},
		{"responseformat=csv", "application/json", "json"},
		{"responseformat=csv", "", "xml"},
		{"responseformat=", "application/json", "json"},
		{"responseformat=json&responseformat=xml", "", "json"},
	} {
		t.Run(tc.query+" "+tc.accept, func(t *testing.T) {
			f := serve(t)
			f.post(202, newEvent(1))
			f.do("GET", "/api/peek?"+tc.query, "", "Accept", tc.accept).wants(200)
			other := map[string]string{"xml": "json", "json": "xml"}[tc.want]
			f.do("GET", "/v1/peek?format="+tc.want, "").wants(200)
			require.Contains(t, f.do("GET", "/v1/peek?format="+other, "").problem(409, "conflict").Detail, "open as "+tc.want)
		})
	}
}

func TestOriginal_KeepsTheFormatOfAnOpenBundle(t *testing.T) {
	for _, first := range []string{"xml", "json"} {
		f := serve(t)
		f.post(202, newEvent(1))
		second := map[string]string{"xml": "json", "json": "xml"}[first]
		f.do("GET", "/api/peek?bundleId="+id(71)+"&responseformat="+first, "").wants(200)
		a := f.do("GET", "/api/peek/timeseries?bundleId="+id(71)+"&responseformat="+second, "").wants(400)
		require.Contains(t, a.body, `"code":"VALIDATION_EXCEPTION"`)
		require.Contains(t, a.body, "open as "+first)
		f.do("GET", "/api/peek/timeseries?responseversion=2.5&responseformat="+first, "").wants(200) // the hub does not compare the version
	}
}

func TestOriginal_ReadsTheVersionAsANumber(t *testing.T) {
	for text, want := range map[string]string{
		"": "1.0", "2": "2.0", "2.5": "2.5", "%202.25%20": "2.25", "1e2": "100.0", "-1": "-1.0",
		"two": "1.0", "1,5": "1.0", "NaN": "1.0", "Infinity": "1.0", "1e300": "1.0", "1e-300": "1.0",
	} {
		t.Run(text, func(t *testing.T) {
			f := serve(t)
			f.post(202, newEvent(1))
			f.do("GET", "/api/peek?responseversion="+text, "").wants(200)
			next, err := f.store.NextUnacknowledged(t.Context(), actorID(t), domain.DefaultGroups().All())
			require.NoError(t, err)
			require.Equal(t, want, next.Open.Version)
		})
	}
}

func actorID(t *testing.T) domain.ActorID {
	t.Helper()
	id, err := domain.ParseActorID(actor)
	require.NoError(t, err)
	return id
}
