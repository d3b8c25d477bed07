# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""TensorFlow: products and a small convolutional network: tensorflow_train.py"""
import ctypes
import pathlib
import sys
import sysconfig

# TensorFlow 2.21 opens libcusolver by its name and does not look into the folder of NVIDIA's package.
for path in pathlib.Path(sysconfig.get_path('purelib')).glob('nvidia/cusolver/lib/libcusolver.so.*'):
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
import tensorflow as tf

if not tf.config.list_physical_devices('GPU'):
    sys.exit('TensorFlow uses no GPU')
with tf.device('/GPU:0'):
    a = tf.random.normal((256, 256))
    print('product', (a @ a).shape)
    model = tf.keras.Sequential([tf.keras.layers.Conv2D(8, 3), tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])
    model.compile('adam', tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(tf.random.normal((64, 16, 16, 3)), tf.zeros(64, dtype=tf.int32), epochs=2, verbose=0)
    print('trained', model.count_params())
