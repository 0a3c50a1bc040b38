package embedded_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func TestConditions_HaveTheResultsOfAzurite(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		etag := string(putBlob(t, c, "x", "data"))
		plain := strings.Trim(etag, `"`)
		past, future := time.Now().Add(-time.Hour).UTC().Format(time.RFC1123), time.Now().Add(time.Hour).UTC().Format(time.RFC1123)
		past, future = strings.Replace(past, "UTC", "GMT", 1), strings.Replace(future, "UTC", "GMT", 1)
		for _, tc := range []struct {
			headers []string
			status  int
			code    string
		}{
			{[]string{`If-Match: "1", ` + etag}, 200, ""},
			{[]string{`If-Match: 1,` + plain}, 200, ""},
			{[]string{"If-Match: *,abc"}, 200, ""},
			{[]string{"If-None-Match: abc,*"}, 400, "UnsatisfiableCondition"},
			{[]string{`If-Match: "1", "2"`}, 412, "ConditionNotMet"},
			{[]string{`If-None-Match: "1", ` + etag}, 304, "ConditionNotMet"},
			{[]string{`If-None-Match: "1", "2"`}, 200, ""},
			{[]string{"If-None-Match: *"}, 400, "UnsatisfiableCondition"},
			{[]string{"If-None-Match: " + etag, "If-Modified-Since: " + past}, 200, ""},
			{[]string{"If-None-Match: " + etag, "If-Modified-Since: " + future}, 304, "ConditionNotMet"},
			{[]string{`If-None-Match: "1"`, "If-Modified-Since: " + future}, 200, ""},
			{[]string{`If-Match: "1"`, "If-None-Match: " + etag}, 412, "ConditionNotMet"},
		} {
			status, code, _ := sendRequest(t, a, newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/x", "", tc.headers...))
			require.Equal(t, tc.status, status, tc.headers)
			require.Equal(t, tc.code, code, tc.headers)
		}
		for _, method := range []string{"PUT", "DELETE"} {
			for _, etags := range []string{`"1", ` + etag, `"1", *`} {
				status, code, _ := sendRequest(t, a, newSignedRequest(t, a, method, "/devstoreaccount1/c-c/x", "", "x-ms-blob-type: BlockBlob", "If-Match: "+etags))
				require.Equal(t, 400, status)
				require.Equal(t, "MultipleConditionHeadersNotSupported", code)
			}
		}
		_, err := c.NewBlobClient("x").Delete(t.Context(), &blob.DeleteOptions{AccessConditions: ifNoneMatch(azcore.ETag(etag))})
		requireRefused(t, err, 412, bloberror.ConditionNotMet)
		_, err = c.NewBlobClient("x").Delete(t.Context(), &blob.DeleteOptions{AccessConditions: ifNoneMatch(azcore.ETagAny)})
		require.NoError(t, err, "If-None-Match: * prevents only writing")
	})
}
