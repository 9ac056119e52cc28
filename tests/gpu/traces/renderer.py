"""A renderer of a large scene: meshes with their trees of boxes, and textures with all their
resolutions, are loaded when the camera comes near, and dropped when it is far away."""

import math
import random

import cupy

cupy.cuda.set_allocator(None)
random.seed(4)

shade = cupy.RawKernel(
    r"""
extern "C" __global__ void shade(const float4* boxes, int count, const uchar4* texture, int side,
                                 float4* image, int width, int height, float x0, float y0) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float4 sum = image[y * width + x];
  for (int i = 0; i < count && i < 64; ++i) {
    const float dx = boxes[i].x - (x0 + x * 0.01f), dy = boxes[i].y - (y0 + y * 0.01f);
    if (dx * dx + dy * dy > boxes[i].w) continue;
    const uchar4 color = texture[(y % side) * side + x % side];
    sum.x += color.x * 0.001f, sum.y += color.y * 0.001f, sum.z += color.z * 0.001f;
  }
  image[y * width + x] = sum;
}""",
    "shade",
)


class Mesh:
    def __init__(self, seed):
        chance = random.Random(seed)
        count = int(300 * 2 ** (6 * chance.random()))
        self.vertices = cupy.zeros((count, 3), dtype=cupy.float32)
        self.normals = cupy.zeros((count, 3), dtype=cupy.float32)
        self.texture_points = cupy.zeros((count, 2), dtype=cupy.float32)
        self.triangles = cupy.zeros((2 * count, 3), dtype=cupy.uint32)
        self.boxes = cupy.zeros((2 * count - 1, 4), dtype=cupy.float32)


class Texture:
    def __init__(self, seed):
        side = random.Random(seed).choice([64, 128, 128, 256, 256, 512])
        self.levels = []
        while side >= 4:
            self.levels.append(cupy.zeros((side, side, 4), dtype=cupy.uint8))
            side //= 2


objects = [
    (random.uniform(0, 100), random.uniform(0, 100), random.randrange(10**6), random.randrange(80))
    for _ in range(3000)
]
meshes, textures = {}, {}
width, height = 320, 180
for frame in range(300):
    angle = 2 * math.pi * frame / 300
    x, y = 50 + 35 * math.cos(angle), 50 + 35 * math.sin(2 * angle)
    far = {key for key in meshes if (objects[key][0] - x) ** 2 + (objects[key][1] - y) ** 2 > 20**2}
    for key in far:
        del meshes[key]
    for key, (ox, oy, mesh, texture) in enumerate(objects):
        if (ox - x) ** 2 + (oy - y) ** 2 < 16**2:
            if key not in meshes:
                meshes[key] = Mesh(mesh)
            if texture not in textures:
                textures[texture] = Texture(texture)
    used = {objects[key][3] for key in meshes}
    for texture in [texture for texture in textures if texture not in used]:
        del textures[texture]
    image = cupy.zeros((height, width, 4), dtype=cupy.float32)
    for key in list(meshes)[:8]:
        texture = textures[objects[key][3]].levels[0]
        shade(
            (width // 16, -(-height // 16)),
            (16, 16),
            (meshes[key].boxes, meshes[key].boxes.shape[0], texture, texture.shape[0], image)
            + (width, height, cupy.float32(x), cupy.float32(y)),
        )
    if frame % 50 == 0:
        print("frame", frame, "meshes", len(meshes), "light", float(image.sum()))
