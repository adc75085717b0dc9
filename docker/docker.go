// Package docker holds the Dockerfiles and the matrix of images, so that the
// invar binary alone can build them.
package docker

import "embed"

// FS holds images.yaml and the Dockerfiles that it names.
//
//go:embed images.yaml *.Dockerfile install-packages
var FS embed.FS
