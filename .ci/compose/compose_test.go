// Package compose checks the files below deploy that only other programs read:
// compose.yaml as Docker reads it, and the rules of Prometheus as Prometheus
// does. Tests in cmd/messagehub run the commands in compose.yaml.
package compose

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

const folder = "../../deploy"

func load(t *testing.T, text []byte) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  folder,
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: text}},
		Environment: types.Mapping{},
	})
}

func TestComposeFile_IsReadAsByDocker(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := load(t, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(project.Services) != 10 {
		t.Errorf("got %d services", len(project.Services))
	}
	for _, s := range project.Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				if _, ok := project.Volumes[v.Source]; !ok {
					t.Errorf("%s: no volume %s", s.Name, v.Source)
				}
				continue
			}
			if _, err := os.Stat(v.Source); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s to other machines", s.Name, p.Published)
			}
		}
		if s.Build == nil {
			continue
		}
		if !s.ReadOnly {
			t.Errorf("%s can write to its image", s.Name)
		}
		if file := filepath.Join(s.Build.Context, s.Build.Dockerfile); !isSameFile(file, filepath.Join(folder, "Dockerfile")) {
			t.Errorf("%s is built from %s", s.Name, file)
		}
	}
}

func TestComposeFile_WithAnUnknownKeyIsRefused(t *testing.T) {
	for _, text := range []string{
		"services: {hub: {image: messagehub, comand: [serve]}}",
		"services: {hub: {image: messagehub, depends_on: [other]}}",
		"servces: {}",
	} {
		if _, err := load(t, []byte("name: x\n"+text)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// isSameFile reports whether two paths, which need not exist, name the same
// file.
func isSameFile(a, b string) bool {
	first, err := filepath.Abs(a)
	if err != nil {
		return false
	}
	second, err := filepath.Abs(b)
	return err == nil && first == second
}
