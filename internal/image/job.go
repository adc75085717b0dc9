package image

import (
	"maps"
	"slices"
	"strconv"
)

// A Job is one image for one platform, ready for a builder.
type Job struct {
	Row
	Platform string            // "linux/amd64"
	Context  string            // folder with the Dockerfile and what it copies
	From     string            // base by digest, or an image ID of the local store
	Epoch    int64             // SOURCE_DATE_EPOCH: the time of every file and of the image, seconds
	Labels   map[string]string // known before the build
	Secrets  []string          // "id=pip.conf,src=FILE"
	Made     string            // file that the builder writes: an OCI archive, or the image's ID
	Insecure bool              // the base's registry is on this machine and speaks HTTP
}

// arguments are the build arguments as "NAME=VALUE", sorted.
func (j Job) arguments() []string {
	values := merged(j.Args)
	values["BASE"] = j.From
	values["TARGET"] = j.Target
	values["SOURCE_DATE_EPOCH"] = strconv.FormatInt(j.Epoch, 10)
	return pairs(values)
}

func pairs(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, k+"="+m[k])
	}
	return out
}

// buildahArgv is for buildah and podman, which share their flags. The format is
// docker's: OCI's configuration has no health check. Layers of steps are not
// kept: they would hold what later steps remove.
func buildahArgv(program string, j Job) []string {
	argv := []string{
		program, "build", "--format", "docker", "--layers=false", "--force-rm", "--file", j.Context + "/Dockerfile",
		"--platform", j.Platform, "--timestamp", strconv.FormatInt(j.Epoch, 10), "--iidfile", j.Made,
	}
	for _, a := range j.arguments() {
		argv = append(argv, "--build-arg", a)
	}
	for _, l := range pairs(j.Labels) {
		argv = append(argv, "--label", l)
	}
	for _, s := range j.Secrets {
		argv = append(argv, "--secret", s)
	}
	if j.Insecure {
		argv = append(argv, "--tls-verify=false")
	}
	return append(argv, j.Context)
}

// buildctlArgv is for BuildKit's own client. rewrite-timestamp gives every
// file in the layers the time of SOURCE_DATE_EPOCH.
func buildctlArgv(program string, j Job) []string {
	argv := []string{
		program, "build", "--progress", "plain", "--frontend", "dockerfile.v0",
		"--local", "context=" + j.Context, "--local", "dockerfile=" + j.Context, "--opt", "platform=" + j.Platform,
		"--output", "type=oci,rewrite-timestamp=true,dest=" + j.Made,
	}
	for _, a := range j.arguments() {
		argv = append(argv, "--opt", "build-arg:"+a)
	}
	for _, l := range pairs(j.Labels) {
		argv = append(argv, "--opt", "label:"+l)
	}
	for _, s := range j.Secrets {
		argv = append(argv, "--secret", s)
	}
	return argv
}

// dockerArgv is for docker with buildx. Provenance would hold the time of the
// build, so that no two would be equal.
func dockerArgv(program string, j Job) []string {
	argv := []string{
		program, "buildx", "build", "--progress", "plain", "--provenance=false", "--file", j.Context + "/Dockerfile",
		"--platform", j.Platform, "--output", "type=oci,rewrite-timestamp=true,dest=" + j.Made,
	}
	for _, a := range j.arguments() {
		argv = append(argv, "--build-arg", a)
	}
	for _, l := range pairs(j.Labels) {
		argv = append(argv, "--label", l)
	}
	for _, s := range j.Secrets {
		argv = append(argv, "--secret", s)
	}
	return append(argv, j.Context)
}
