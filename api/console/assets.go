package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
)

//go:embed assets/*.js assets/*.css assets/*.svg
var assetFiles embed.FS

// An asset is a file that pages load. Its path contains a part of its SHA-256, so browsers may
// cache it without limit.
type asset struct {
	name        string // name in the path of the asset
	contentType string
	plain, gzip []byte
}

// assetTypes maps file extensions to media types. The types that package mime knows depend on the
// machine.
var assetTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

var assets = sync.OnceValue(func() map[string]*asset {
	all := make(map[string]*asset)
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // an embedded folder can always be read
	}
	for _, e := range entries {
		plain, err := assetFiles.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err) // an embedded file can always be read
		}
		sum := sha256.Sum256(plain)
		base, extension, _ := strings.Cut(e.Name(), ".")
		all[e.Name()] = &asset{
			name:        base + "-" + hex.EncodeToString(sum[:8]) + "." + extension,
			contentType: assetTypes[path.Ext(e.Name())], plain: plain, gzip: compressAsset(plain),
		}
	}
	return all
})

func compressAsset(plain []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	_, _ = w.Write(plain) // writing to memory never fails
	_ = w.Close()
	return b.Bytes()
}

// assetPath returns the path of the asset whose file is called file.
func assetPath(file string) string { return link("assets", assets()[file].name) }

// serveAsset responds with an asset. If the path names another version of the asset, serveAsset
// sends this node's version and forbids caching: during an upgrade, a page and its assets may come
// from different nodes.
func (e *edge) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "file")
	base, rest, _ := strings.Cut(name, "-")
	_, extension, _ := strings.Cut(rest, ".")
	a := assets()[base+"."+extension]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Security-Policy", policy)
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-store")
	if name == a.name {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := a.plain
	if e.host.AcceptsGzip(r.Header) && len(a.gzip) < len(a.plain) {
		header.Set("Content-Encoding", "gzip")
		body = a.gzip
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // Write fails if the client has disconnected
	}
}
