package embedded

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// failingFiles is a file system in which one call fails, and optionally all later calls. It never syncs.
type failingFiles struct {
	systemFiles
	left  int    // number of calls until the failure; -1: nothing fails
	still bool   // true if all later calls fail, too
	count int    // number of calls
	what  string // name of the first failed call
}

var errBreaking = errors.New("input/output error")

func (b *failingFiles) shouldFail(what string) bool {
	b.count++
	b.left--
	if b.left == 0 || b.left < 0 && b.still {
		if b.what == "" {
			b.what = what
		}
		return true
	}
	return false
}

func (b *failingFiles) createFile(name string) (*os.File, error) {
	if b.shouldFail("create") {
		return nil, errBreaking
	}
	return b.systemFiles.createFile(name)
}

func (b *failingFiles) writeFile(f *os.File, p []byte) (int, error) {
	if b.shouldFail("write") {
		n, _ := f.Write(p[:len(p)/2])
		return n, errBreaking
	}
	return b.systemFiles.writeFile(f, p)
}

func (b *failingFiles) syncFile(*os.File) error {
	if b.shouldFail("sync") {
		return errBreaking
	}
	return nil // tests with this file system simulate no power failure
}

func (b *failingFiles) renameFile(from, to string) error {
	if b.shouldFail("rename") {
		return errBreaking
	}
	return b.systemFiles.renameFile(from, to)
}

func (b *failingFiles) removeFile(name string) error {
	if b.shouldFail("remove") {
		return errBreaking
	}
	return b.systemFiles.removeFile(name)
}

func (b *failingFiles) syncFolder(string) error {
	if b.shouldFail("syncFolder") {
		return errBreaking
	}
	return nil
}

// This test runs each kind of request repeatedly, with a different disk call failing each time. The request must fail
// without a partial effect. After a failed folder sync, the account must refuse all requests.
func TestFailingDisk_NeverReturnsSuccess(t *testing.T) {
	for name, do := range map[string]func(*Account) (int, string){
		"a new blob":   func(a *Account) (int, string) { return sendRequest(a, "PUT", "/c-c/new", "new") },
		"an overwrite": func(a *Account) (int, string) { return sendRequest(a, "PUT", "/c-c/old", "new") },
		"a removal":    func(a *Account) (int, string) { return sendRequest(a, "DELETE", "/c-c/old", "") },
		"a container":  func(a *Account) (int, string) { return sendRequest(a, "PUT", "/c-d?restype=container", "") },
		"a block":      func(a *Account) (int, string) { return sendRequest(a, "PUT", "/c-c/x?comp=block&blockid=MQ==", "new") },
		"a list":       func(a *Account) (int, string) { return commitTwo(a) },
		"metadata": func(a *Account) (int, string) {
			return sendRequest(a, "PUT", "/c-c/old?comp=metadata", "", "X-Ms-Meta-A: 2")
		},
		"properties": func(a *Account) (int, string) {
			return sendRequest(a, "PUT", "/c-c/old?comp=properties", "", "X-Ms-Blob-Content-Type: b/c")
		},
		"a tier": func(a *Account) (int, string) {
			return sendRequest(a, "PUT", "/c-c/old?comp=tier", "", "X-Ms-Access-Tier: Cool")
		},
		"service properties": func(a *Account) (int, string) {
			return sendRequest(a, "PUT", "/?restype=service&comp=properties", "<StorageServiceProperties><DefaultServiceVersion>2021-12-02</DefaultServiceVersion></StorageServiceProperties>")
		},
		"container metadata": func(a *Account) (int, string) {
			return sendRequest(a, "PUT", "/c-c?restype=container&comp=metadata", "", "X-Ms-Meta-A: 2")
		},
		"container deletion": func(a *Account) (int, string) { return sendRequest(a, "DELETE", "/c-c?restype=container", "") },
		"a copy":             func(a *Account) (int, string) { return copyOld(a) },
		"a list that keeps":  func(a *Account) (int, string) { return commitOld(a) },
		"a broken body": func(a *Account) (int, string) {
			return sendRequest(a, "PUT", "/c-c/new", "new", "Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==")
		},
	} {
		for _, still := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", still ", still), func(t *testing.T) {
				succeeded := false
				for at := 1; !succeeded; at++ {
					succeeded = breakAt(t, do, at, still)
				}
			})
		}
	}
}

// breakAt executes a request while disk call number at fails, and checks the result. It returns true if the request
// made fewer calls.
func breakAt(t *testing.T, do func(*Account) (int, string), at int, still bool) bool {
	dir := t.TempDir()
	disk := &failingFiles{left: -1}
	a := openOn(t, dir, disk, "c-c")
	status, _ := sendRequest(a, "PUT", "/c-c/old", "old", "X-Ms-Meta-A: 1")
	require.Equal(t, 201, status)
	if status, _ = sendRequest(a, "PUT", "/c-c/listed?comp=block&blockid=MQ==", "data"); status == 201 {
		status, _ = sendRequest(a, "PUT", "/c-c/listed?comp=blocklist", "<BlockList><Latest>MQ==</Latest></BlockList>")
	}
	require.Equal(t, 201, status)
	before := readState(a)

	disk.left, disk.still, disk.count = at, still, 0
	status, code := do(a)
	fired := disk.count >= at
	disk.left, disk.still = -1, false
	switch {
	case !fired:
		require.NotEqual(t, 500, status)
	case disk.what == "remove" && status != 500:
		// when the account is reopened, it removes a draft whose removal failed
	case disk.what == "syncFolder" && code == "InternalError" && a.broken != nil:
		for _, path := range []string{"/c-c/old", "/c-c/new", "/c-c"} {
			status, _ := sendRequest(a, "GET", path, "")
			require.Equal(t, 500, status, "the state of the disk is unknown")
		}
	default:
		require.Equal(t, 500, status, disk.what)
		require.Equal(t, "InternalError", code)
		require.Equal(t, before, readState(a), disk.what)
	}
	broken := a.broken != nil
	after := readState(a)
	require.NoError(t, a.Close())

	again := openOn(t, dir, &failingFiles{left: -1})
	if !broken {
		require.Equal(t, after, readState(again), "the reopened account has the same state")
	}
	drafts, err := os.ReadDir(path.Join(dir, unfinished))
	require.NoError(t, err)
	require.Empty(t, drafts)
	require.NoError(t, again.Close())
	return !fired
}

func openOn(t *testing.T, dir string, disk *failingFiles, containers ...string) *Account {
	t.Helper()
	s, err := openFolder(dir, datafolder.Claim{}, func(root *os.Root) fileSystem {
		disk.systemFiles = systemFiles{root}
		return disk
	})
	require.NoError(t, err)
	key, err := base64.StdEncoding.DecodeString(WellKnownKey)
	require.NoError(t, err)
	a := newAccount(Options{
		Dir: dir, Account: WellKnownAccount, Containers: containers, MaxBlob: 1 << 20, MaxUncommitted: 1 << 20, MaxRequests: 1, Clock: time.Now, Logger: slog.New(slog.DiscardHandler),
	}, key, s)
	require.NoError(t, a.loadStored())
	return a
}

// readState describes all blobs, containers and service properties of the test as text.
func readState(a *Account) string {
	var all strings.Builder
	for _, what := range []string{"/c-c/old", "/c-c/new", "/c-c/x", "/c-c/listed", "/c-c/listed?comp=blocklist", "/c-c?restype=container", "/c-d?restype=container", "/?restype=service&comp=properties"} {
		r := newRequest("GET", what, "")
		resp, err := a.Transport().Do(r)
		if err != nil {
			return err.Error()
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode >= 400 {
			data = nil
		}
		fmt.Fprintln(&all, what, resp.StatusCode, string(data), err, resp.Header["Etag"], resp.Header["X-Ms-Meta-A"], resp.Header["Content-Type"], resp.Header["X-Ms-Copy-Id"], resp.Header["X-Ms-Access-Tier"])
	}
	return all.String()
}

func commitTwo(a *Account) (int, string) {
	for _, id := range []string{"MQ==", "Mg=="} {
		if status, code := sendRequest(a, "PUT", "/c-c/x?comp=block&blockid="+id, "data"); status != 201 {
			return status, code
		}
	}
	return sendRequest(a, "PUT", "/c-c/x?comp=blocklist", "<BlockList><Latest>MQ==</Latest><Latest>Mg==</Latest></BlockList>")
}

// copyOld copies a blob.
func copyOld(a *Account) (int, string) {
	r := newRequest("PUT", "/c-c/new", "", "X-Ms-Copy-Source: "+a.Endpoint()+"/c-c/old")
	r.Header.Del("X-Ms-Blob-Type")
	signRequest(a, r, r.URL.Query())
	resp, err := a.Transport().Do(r)
	if err != nil {
		return 0, err.Error()
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("X-Ms-Error-Code")
}

// commitOld commits a block list that names a committed block and a new one.
func commitOld(a *Account) (int, string) {
	if status, code := sendRequest(a, "PUT", "/c-c/listed?comp=block&blockid=Mg==", "new"); status != 201 {
		return status, code
	}
	return sendRequest(a, "PUT", "/c-c/listed?comp=blocklist", "<BlockList><Latest>Mg==</Latest><Committed>MQ==</Committed></BlockList>")
}

func newRequest(method, target, data string, headers ...string) *http.Request {
	u, err := url.Parse("http://embedded.localhost/" + WellKnownAccount + target)
	if err != nil {
		panic(err)
	}
	r := (&http.Request{
		Method: method, URL: u, Header: http.Header{}, ContentLength: int64(len(data)), Body: io.NopCloser(strings.NewReader(data)),
	}).WithContext(context.Background())
	r.Header.Set("X-Ms-Date", time.Now().UTC().Format(http.TimeFormat))
	r.Header.Set("X-Ms-Blob-Type", "BlockBlob")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	key, _ := base64.StdEncoding.DecodeString(WellKnownKey)
	signRequest(&Account{options: Options{Account: WellKnownAccount}, key: key}, r, u.Query())
	return r
}

// signRequest signs a request with the account's own code, which other tests verify with Microsoft's clients.
func signRequest(a *Account, r *http.Request, query url.Values) {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(a.stringToSign(r, r.URL.EscapedPath(), query, r.Header.Get("X-Ms-Date"), strings.Compare)))
	r.Header.Set("Authorization", "SharedKey "+WellKnownAccount+":"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

func sendRequest(a *Account, method, target, data string, headers ...string) (int, string) {
	resp, err := a.Transport().Do(newRequest(method, target, data, headers...))
	if err != nil {
		return 0, err.Error()
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("X-Ms-Error-Code")
}
