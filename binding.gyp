{
  # The plain node-gyp build: `npm run build -- --gyp`. The same sources and flags as CMakeLists.txt, both from
  # native/sources.json; one static library per kernel set, because gyp has no flags per file.
  "variables": {
    "release": "<!(node -p \"require('./package.json').version\")"
  },
  "target_defaults": {
    "include_dirs": [
      "<!@(node -p \"require('./native/sources.json').includes.join(' ')\")",
      "<!@(node -p \"require('./native/sources.json').systemIncludes.join(' ')\")"
    ],
    "defines": [
      "<!@(node -p \"require('./native/sources.json').defines.join(' ')\")",
      "FINCH_RELEASE=\"<(release)\""
    ],
    "cflags!": ["-fno-exceptions"],
    "cflags_cc!": ["-fno-exceptions", "-fno-rtti", "-std=gnu++17", "-std=gnu++20"],
    "cflags_cc": [
      "-std=c++20",
      "<!@(node -p \"require('./native/sources.json').flags.gnu.join(' ')\")"
    ],
    "conditions": [
      ["OS=='linux'", { "cflags_cc": ["<!@(node -p \"require('./native/sources.json').falseWarnings.gcc.join(' ')\")"] }]
    ],
    "xcode_settings": {
      "GCC_ENABLE_CPP_EXCEPTIONS": "YES",
      "GCC_ENABLE_CPP_RTTI": "YES",
      "CLANG_CXX_LANGUAGE_STANDARD": "c++20",
      "CLANG_CXX_LIBRARY": "libc++",
      "MACOSX_DEPLOYMENT_TARGET": "11.0",
      "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').flags.gnu.join(' ')\")"]
    },
    "msvs_settings": {
      "VCCLCompilerTool": {
        "ExceptionHandling": 1,
        "AdditionalOptions": ["/std:c++20", "<!@(node -p \"require('./native/sources.json').flags.msvc.join(' ')\")"]
      }
    }
  },
  "targets": [
    {
      "target_name": "toolfinch_core",
      "type": "static_library",
      "sources": [
        "<!@(node -p \"require('./native/sources.json').core.join(' ')\")",
        "<!@(node -p \"require('./native/sources.json').onnx.join(' ')\")",
        "<!@(node -p \"require('./native/sources.json').kernels.baseline.sources.join(' ')\")"
      ]
    },
    {
      "target_name": "toolfinch",
      "sources": ["<!@(node -p \"require('./native/sources.json').node.join(' ')\")"],
      "include_dirs": ["node_modules/node-addon-api"],
      "defines": ["<!@(node -p \"require('./native/sources.json').nodeDefines.join(' ')\")"],
      "dependencies": ["toolfinch_core"],
      "conditions": [
        ["target_arch=='x64'", { "dependencies": ["toolfinch_avx2", "toolfinch_avx512", "toolfinch_avx512vnni", "toolfinch_avx512bf16", "toolfinch_amx"] }],
        ["target_arch=='arm64'", { "dependencies": ["toolfinch_neon", "toolfinch_neondot", "toolfinch_neoni8mm", "toolfinch_neonbf16"] }],
        ["OS=='linux'", { "ldflags": ["-Wl,--version-script=<(module_root_dir)/native/node/addon.map"], "libraries": ["-ldl", "-lpthread"] }]
      ]
    }
  ],
  "conditions": [
    ["target_arch=='x64'", {
      "targets": [
        {
          "target_name": "toolfinch_avx2",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.avx2.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.avx2.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.avx2.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.avx2.flags.msvc.join(' ')\")"]
            }
          }
        },
        {
          "target_name": "toolfinch_avx512",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.avx512.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.avx512.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.avx512.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.avx512.flags.msvc.join(' ')\")"]
            }
          }
        },
        {
          "target_name": "toolfinch_avx512vnni",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.avx512vnni.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.avx512vnni.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.avx512vnni.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.avx512vnni.flags.msvc.join(' ')\")"]
            }
          }
        },
        {
          "target_name": "toolfinch_avx512bf16",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.avx512bf16.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.avx512bf16.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.avx512bf16.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.avx512bf16.flags.msvc.join(' ')\")"]
            }
          }
        },
        {
          "target_name": "toolfinch_amx",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.amx.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.amx.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.amx.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.amx.flags.msvc.join(' ')\")"]
            }
          }
        }
      ]
    }],
    ["target_arch=='arm64'", {
      "targets": [
        {
          "target_name": "toolfinch_neon",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.neon.sources.join(' ')\")"]
        },
        {
          "target_name": "toolfinch_neondot",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.neondot.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.neondot.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.neondot.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.neondot.flags.msvc.join(' ')\")"]
            }
          }
        },
        {
          "target_name": "toolfinch_neoni8mm",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.neoni8mm.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.neoni8mm.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.neoni8mm.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.neoni8mm.flags.msvc.join(' ')\")"]
            }
          }
        },
        {
          "target_name": "toolfinch_neonbf16",
          "type": "static_library",
          "sources": ["<!@(node -p \"require('./native/sources.json').kernels.neonbf16.sources.join(' ')\")"],
          "cflags_cc": ["<!@(node -p \"require('./native/sources.json').kernels.neonbf16.flags.gnu.join(' ')\")"],
          "xcode_settings": {
            "OTHER_CPLUSPLUSFLAGS": ["<!@(node -p \"require('./native/sources.json').kernels.neonbf16.flags.gnu.join(' ')\")"]
          },
          "msvs_settings": {
            "VCCLCompilerTool": {
              "AdditionalOptions": ["<!@(node -p \"require('./native/sources.json').kernels.neonbf16.flags.msvc.join(' ')\")"]
            }
          }
        }
      ]
    }]
  ]
}
