package embedded_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestServiceProperties_AreKept(t *testing.T) {
	eachAccountReopened(t, func(t *testing.T, a *embedded.Account, reopen func() *embedded.Account) {
		client := newServiceClient(t, a)
		initial, err := client.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Empty(t, initial.CORS)
		require.False(t, *initial.DeleteRetentionPolicy.Enabled)

		rule := &service.CORSRule{
			AllowedOrigins: to.Ptr("example.com"), AllowedMethods: to.Ptr("GET"), AllowedHeaders: to.Ptr(""), ExposedHeaders: to.Ptr(""), MaxAgeInSeconds: to.Ptr[int32](9),
		}
		metrics := &service.Metrics{Version: to.Ptr("1.0"), Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: &service.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr[int32](3)}}
		_, err = client.SetProperties(t.Context(), &service.SetPropertiesOptions{CORS: []*service.CORSRule{rule}})
		require.NoError(t, err)
		_, err = client.SetProperties(t.Context(), &service.SetPropertiesOptions{HourMetrics: metrics})
		require.NoError(t, err)
		_, err = client.SetProperties(t.Context(), &service.SetPropertiesOptions{DeleteRetentionPolicy: &service.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr[int32](3)}})
		requireRefused(t, err, 501, "NotImplemented")
		_, err = client.SetProperties(t.Context(), &service.SetPropertiesOptions{StaticWebsite: &service.StaticWebsite{Enabled: to.Ptr(true)}})
		requireRefused(t, err, 501, "NotImplemented")
		_, err = client.SetProperties(t.Context(), &service.SetPropertiesOptions{CORS: []*service.CORSRule{rule, rule, rule, rule, rule, rule}})
		requireRefused(t, err, 400, bloberror.InvalidXMLDocument)

		client = newServiceClient(t, reopen())
		got, err := client.GetProperties(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, []*service.CORSRule{rule}, got.CORS)
		require.Equal(t, metrics, got.HourMetrics)
		require.False(t, *got.MinuteMetrics.Enabled)
	})
}

func TestServiceProperties_AreRefusedIfTheyAreUnknown(t *testing.T) {
	a := openAccount(t, embedded.Options{})
	for body, want := range map[string]string{
		"<StorageServiceProperties><Other/></StorageServiceProperties>": "NotImplemented",
		"<Other/>": "InvalidXmlDocument",
		"<StorageServiceProperties><Cors><CorsRule/></Cors></StorageServiceProperties>":            "InvalidXmlDocument",
		"<StorageServiceProperties>" + strings.Repeat(" ", 32<<10) + "</StorageServiceProperties>": "InvalidXmlDocument",
	} {
		_, code, _ := sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/?restype=service&comp=properties", body))
		require.Equal(t, want, code, "%.80s", body)
	}
}

func setCORS(t *testing.T, a *embedded.Account, rules ...*service.CORSRule) {
	t.Helper()
	_, err := newServiceClient(t, a).SetProperties(t.Context(), &service.SetPropertiesOptions{CORS: rules})
	require.NoError(t, err)
}

func corsRule(origins, methods, headers, exposed string) *service.CORSRule {
	return &service.CORSRule{AllowedOrigins: &origins, AllowedMethods: &methods, AllowedHeaders: &headers, ExposedHeaders: &exposed, MaxAgeInSeconds: to.Ptr[int32](9)}
}

func TestCORS_PreflightFollowsTheRules(t *testing.T) {
	a := openAccount(t, embedded.Options{})
	preflight := func(origin, method, headers string) (int, http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), "OPTIONS", a.Endpoint()+"/c-c/x", http.NoBody)
		require.NoError(t, err)
		for name, value := range map[string]string{"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": headers} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		status, _, resp := sendRequest(t, a, r)
		return status, resp.Header
	}
	status, _ := preflight("http://a", "GET", "")
	require.Equal(t, 403, status, "there are no rules")
	setCORS(t, a, corsRule("http://a, *.example.com", "GET", "x-ms-*,range", ""), corsRule("*", "PUT", "*", "*"))
	for _, tc := range []struct {
		origin, method, headers string
		status                  int
		allowed                 string
	}{
		{"http://a", "GET", "", 200, "http://a"},
		{"http://a", "GET", "Range, x-ms-date", 200, "http://a"},
		{"http://a", "GET", "x-ms-date,other", 403, ""},
		{"http://b", "GET", "", 403, ""},
		{"sub.EXAMPLE.com", "GET", "", 200, "sub.EXAMPLE.com"},
		{"example.com", "GET", "", 403, ""},
		{"http://b", "PUT", "other", 200, "*"},
		{"http://a", "DELETE", "", 403, ""},
		{"http://a", "", "", 400, ""},
		{"", "GET", "", 400, ""},
	} {
		status, header := preflight(tc.origin, tc.method, tc.headers)
		require.Equal(t, tc.status, status, tc)
		require.Equal(t, tc.allowed, header.Get("Access-Control-Allow-Origin"), tc)
		if status == 200 {
			require.Equal(t, tc.method, header.Get("Access-Control-Allow-Methods"))
			require.Equal(t, tc.headers, header.Get("Access-Control-Allow-Headers"))
			require.Equal(t, "9", header.Get("Access-Control-Max-Age"))
		}
	}
}

func TestCORS_SetsTheHeadersOfTheMatchingRule(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	putBlob(t, newClient(t, a, "c-c"), "x", "data")
	get := func(name, origin string) http.Header {
		r := newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/"+name, "")
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		_, _, resp := sendRequest(t, a, r)
		_, err := io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		return resp.Header
	}
	require.Empty(t, get("x", "http://a").Get("Vary"))
	setCORS(t, a, corsRule("http://a", "GET", "", "etag,x-ms-blob-*"))
	require.Empty(t, get("x", "").Get("Vary"))
	require.Equal(t, "Origin", get("x", "http://b").Get("Vary"))
	require.Empty(t, get("x", "http://b").Get("Access-Control-Allow-Origin"))
	for _, name := range []string{"x", "none"} {
		header := get(name, "http://a")
		require.Equal(t, "http://a", header.Get("Access-Control-Allow-Origin"))
		require.Equal(t, "true", header.Get("Access-Control-Allow-Credentials"))
		require.Equal(t, "Origin", header.Get("Vary"))
	}
	require.Equal(t, "etag,x-ms-blob-content-md5,x-ms-blob-type", get("x", "http://a").Get("Access-Control-Expose-Headers"))
	setCORS(t, a, corsRule("*", "GET", "", "*"))
	require.Equal(t, "*", get("x", "http://a").Get("Access-Control-Allow-Origin"))
	require.Empty(t, get("x", "http://a").Get("Vary"))
}
