package main_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The test only reads the workflows, because GitHub's runner is not available.
// They must call scripts that exist.
func TestWorkflows_RunScriptsOfTheTree(t *testing.T) {
	root := moduleRoot(t)
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct {
					Uses string
					Run  string
				}
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &workflow), file)
		require.NotEmpty(t, workflow.Jobs, file)
		for name, job := range workflow.Jobs {
			require.NotEmpty(t, job.Steps, name)
			for _, step := range job.Steps {
				require.NotEqual(t, step.Uses == "", step.Run == "", "%s: a step of job %s has to use an action or to run a script", file, name)
				if step.Run != "" {
					info, err := os.Stat(filepath.Join(root, step.Run))
					require.NoError(t, err)
					require.NotZero(t, info.Mode()&0o100, "%s cannot be executed", step.Run)
				}
			}
		}
	}
}
