package embedded_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"hash/crc64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/repository/content/embedded"
)

func md5Of(text string) string {
	sum := md5.Sum([]byte(text))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func crc64Of(text string) string {
	sum := crc64.Checksum([]byte(text), crc64.MakeTable(0x9A6C9329AC4BC9B5))
	return base64.StdEncoding.EncodeToString(binary.LittleEndian.AppendUint64(nil, sum))
}

func TestChecksums_AreVerifiedAndReturnedForBodies(t *testing.T) {
	require.Equal(t, "iJh5CoYUi64=", crc64Of("123456789"), "the check value of CRC-64/NVME is AE8B14860A799888")
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	const blob, block, list = "/devstoreaccount1/c-c/x", "/devstoreaccount1/c-c/x?comp=block&blockid=MQ==", "/devstoreaccount1/c-c/x?comp=blocklist"
	const listed = "<BlockList><Latest>MQ==</Latest></BlockList>\n"
	for _, tc := range []struct {
		path, body string
		headers    []string
		code       string
	}{
		{blob, "data", []string{"x-ms-content-crc64: " + crc64Of("data")}, ""},
		{blob, "data", []string{"x-ms-content-crc64: " + crc64Of("other")}, "Crc64Mismatch"},
		{blob, "data", []string{"x-ms-content-crc64: AAAA"}, "InvalidHeaderValue"},
		{blob, "data", []string{"x-ms-content-crc64: " + crc64Of("data"), "Content-MD5: " + md5Of("data")}, "BothCrc64AndMd5HeaderPresent"},
		{blob, "data", []string{"Content-MD5: " + md5Of("other"), "x-ms-blob-content-md5: " + md5Of("data")}, ""},
		{blob, "data", []string{"Content-MD5: " + md5Of("data"), "x-ms-blob-content-md5: " + md5Of("other")}, "Md5Mismatch"},
		{block, "data", nil, ""},
		{block, "data", []string{"x-ms-content-crc64: " + crc64Of("data")}, ""},
		{block, "data", []string{"x-ms-content-crc64: " + crc64Of("other")}, "Crc64Mismatch"},
		{block, "data", []string{"x-ms-content-crc64: " + crc64Of("data"), "Content-MD5: " + md5Of("data")}, "BothCrc64AndMd5HeaderPresent"},
		{list, listed, []string{"x-ms-content-crc64: " + crc64Of("other")}, "Crc64Mismatch"},
		{list, listed, []string{"Content-MD5: " + md5Of("other")}, "Md5Mismatch"},
		{list, listed, []string{"x-ms-content-crc64: " + crc64Of(listed)}, ""},
	} {
		headers := tc.headers
		if tc.path == blob {
			headers = append(headers, "x-ms-blob-type: BlockBlob")
		}
		status, code, resp := sendRequest(t, a, newSignedRequest(t, a, "PUT", tc.path, tc.body, headers...))
		require.Equal(t, tc.code, code, "%s %s", tc.path, tc.headers)
		if tc.code != "" {
			require.Equal(t, 400, status)
		} else if tc.path != list {
			require.Equal(t, crc64Of(tc.body), resp.Header.Get("x-ms-content-crc64"), "%s %s", tc.path, tc.headers)
			require.Equal(t, md5Of(tc.body), resp.Header.Get("Content-MD5"))
		}
	}
	require.Equal(t, "data", getBlob(t, newClient(t, a, "c-c"), "x"))
}

func TestChecksums_AreReturnedForRanges(t *testing.T) {
	eachAccount(t, func(t *testing.T, a *embedded.Account) {
		c := newClient(t, a, "c-c")
		putBlob(t, c, "x", "0123456789")
		putBlob(t, c, "long", strings.Repeat("a", 4<<20+1))
		for _, tc := range []struct{ name, of, span, code, md5, crc64 string }{
			{"x", "md5", "bytes=2-4", "", md5Of("234"), ""},
			{"x", "crc64", "bytes=2-4", "", "", crc64Of("234")},
			{"x", "md5", "", "InvalidHeaderValue", "", ""},
			{"long", "md5", "bytes=0-4194303", "", md5Of(strings.Repeat("a", 4<<20)), ""},
			{"long", "md5", "bytes=0-", "OutOfRangeInput", "", ""},
		} {
			r := newSignedRequest(t, a, "GET", "/devstoreaccount1/c-c/"+tc.name, "", "x-ms-range-get-content-"+tc.of+": true", "Range: "+tc.span)
			_, code, resp := sendRequest(t, a, r)
			require.Equal(t, tc.code, code, tc)
			require.Equal(t, tc.md5, resp.Header.Get("Content-MD5"), tc)
			require.Equal(t, tc.crc64, resp.Header.Get("x-ms-content-crc64"), tc)
			if code == "" {
				require.Equal(t, 206, resp.StatusCode)
				require.NotEmpty(t, resp.Header.Get("x-ms-blob-content-md5"))
			}
		}
	})
}

func TestCopy_VerifiesTheChecksumOfItsSource(t *testing.T) {
	a := openAccount(t, embedded.Options{Containers: []string{"c-c"}})
	putBlob(t, newClient(t, a, "c-c"), "x", "data")
	for header, want := range map[string]string{
		"x-ms-source-content-md5: " + md5Of("data"):      "",
		"x-ms-source-content-md5: " + md5Of("other"):     "Md5Mismatch",
		"x-ms-source-content-crc64: " + crc64Of("data"):  "",
		"x-ms-source-content-crc64: " + crc64Of("other"): "Crc64Mismatch",
	} {
		_, code, resp := sendRequest(t, a, newSignedRequest(t, a, "PUT", "/devstoreaccount1/c-c/y", "",
			"x-ms-copy-source: "+a.Endpoint()+"/c-c/x", "x-ms-requires-sync: true", header))
		require.Equal(t, want, code, header)
		if strings.HasSuffix(header, md5Of("data")) {
			require.Equal(t, md5Of("data"), resp.Header.Get("Content-MD5"))
		}
	}
}
